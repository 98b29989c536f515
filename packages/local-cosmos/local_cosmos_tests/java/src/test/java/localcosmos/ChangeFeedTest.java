package localcosmos;

import static localcosmos.Connector.feedRanges;
import static localcosmos.Connector.numbers;
import static localcosmos.Connector.parts;
import static localcosmos.LocalAccount.createItems;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.implementation.ImplementationBridgeHelpers.CosmosChangeFeedRequestOptionsHelper;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ChangeFeedTest {
    private CosmosAsyncContainer container;

    /** Rows, and where to go on after them. */
    private record Changes(List<ObjectNode> rows, List<String> continuations) {
    }

    @BeforeEach
    void fill() {
        container = LocalAccount.createContainer(2);
        createItems(container, 0, 20);
    }

    @Test
    void from_the_beginning_each_item_comes_once_with_its_sequence_number() {
        Changes changes = read(fromBeginning(feedRanges(container)));
        assertEquals(range(0, 20), numbers(changes.rows));
        assertTrue(changes.rows.stream().allMatch(row -> row.get("_lsn").isIntegralNumber()));
    }

    @Test
    void parts_of_physical_partitions_hold_each_change_once() {
        List<FeedRange> parts = feedRanges(container).stream()
            .flatMap(range -> parts(container, range, 3).stream())
            .toList();
        assertEquals(range(0, 20), numbers(read(fromBeginning(parts)).rows));
    }

    @Test
    void from_now_on_only_what_is_written_later_comes() {
        Changes nothing = read(
            feedRanges(container).stream().map(CosmosChangeFeedRequestOptions::createForProcessingFromNow).toList());
        assertTrue(nothing.rows.isEmpty());
        createItems(container, 20, 25);
        assertEquals(range(20, 25), numbers(goOn(nothing).rows));
    }

    @Test
    void from_a_time_on_only_what_was_written_since_comes() {
        assertEquals(range(0, 20), numbers(read(since(Instant.now().minusSeconds(3600))).rows));
        assertTrue(read(since(Instant.now().plusSeconds(3600))).rows.isEmpty());
    }

    @Test
    void a_continuation_shows_what_came_after_it_and_nothing_else() {
        Changes first = read(fromBeginning(feedRanges(container)));
        assertTrue(goOn(first).rows.isEmpty());
        createItems(container, 20, 22);
        container.upsertItem(LocalAccount.item(3)).block();
        assertEquals(List.of(3, 20, 21), numbers(goOn(first).rows));
    }

    @Test
    void a_continuation_from_before_a_split_loses_and_doubles_nothing() {
        Changes first = read(fromBeginning(feedRanges(container)));
        LocalAccount.split(container, "0");
        createItems(container, 20, 40);
        Changes second = goOn(first);
        assertEquals(range(20, 40), numbers(second.rows));
        createItems(container, 40, 50);
        assertEquals(range(40, 50), numbers(goOn(second).rows));
    }

    @Test
    void small_pages_follow_one_another() {
        List<CosmosChangeFeedRequestOptions> options = fromBeginning(feedRanges(container));
        options.forEach(each -> each.setMaxItemCount(3));
        assertEquals(range(0, 20), numbers(read(options).rows));
    }

    @Test
    void a_feed_that_is_planned_up_to_a_sequence_number_ends_there() {
        List<CosmosChangeFeedRequestOptions> options = fromBeginning(feedRanges(container));
        for (CosmosChangeFeedRequestOptions each : options) {
            each.setMaxItemCount(1);
            CosmosChangeFeedRequestOptionsHelper.getCosmosChangeFeedRequestOptionsAccessor().setEndLSN(each, 10L);
        }
        List<ObjectNode> rows = read(options).rows;
        assertEquals(range(0, 10), numbers(rows.stream().filter(row -> row.get("_lsn").asLong() <= 10).toList()));
    }

    @Test
    void the_usage_of_a_physical_partition_comes_with_its_first_page() {
        CosmosChangeFeedRequestOptions options =
            CosmosChangeFeedRequestOptions.createForProcessingFromNow(feedRanges(container).get(0));
        options.setQuotaInfoEnabled(true);
        FeedResponse<ObjectNode> page = container.queryChangeFeed(options, ObjectNode.class).byPage().blockFirst();
        String usage = page.getResponseHeaders().get("x-ms-resource-usage");
        assertTrue(usage.contains("documentsCount="), usage);
    }

    private Changes read(List<CosmosChangeFeedRequestOptions> feeds) {
        Changes changes = new Changes(new ArrayList<>(), new ArrayList<>());
        for (CosmosChangeFeedRequestOptions feed : feeds) {
            String continuation = null;
            for (FeedResponse<ObjectNode> page : container.queryChangeFeed(feed, ObjectNode.class).byPage().toIterable()) {
                changes.rows.addAll(page.getResults());
                continuation = page.getContinuationToken();
            }
            changes.continuations.add(continuation);
        }
        return changes;
    }

    private Changes goOn(Changes before) {
        return read(
            before.continuations.stream()
                .map(CosmosChangeFeedRequestOptions::createForProcessingFromContinuation)
                .toList());
    }

    private List<CosmosChangeFeedRequestOptions> since(Instant time) {
        return feedRanges(container).stream()
            .map(range -> CosmosChangeFeedRequestOptions.createForProcessingFromPointInTime(time, range))
            .toList();
    }

    private static List<CosmosChangeFeedRequestOptions> fromBeginning(List<FeedRange> ranges) {
        return ranges.stream().map(CosmosChangeFeedRequestOptions::createForProcessingFromBeginning).toList();
    }

    private static List<Integer> range(int from, int to) {
        return IntStream.range(from, to).boxed().toList();
    }
}
