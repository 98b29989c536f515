package localcosmos;

import static localcosmos.Connector.feedRanges;
import static localcosmos.Connector.numbers;
import static localcosmos.Connector.pages;
import static localcosmos.Connector.parts;
import static localcosmos.Connector.rows;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.models.CosmosContainerRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ReadsTest {
    private static final int ITEMS = 60;
    private static final SqlQuerySpec ALL = new SqlQuerySpec("SELECT * FROM r");

    private CosmosAsyncContainer container;

    @BeforeEach
    void fill() {
        container = LocalAccount.createContainer(3);
        LocalAccount.createItems(container, 0, ITEMS);
    }

    @Test
    void the_schema_is_inferred_from_the_first_rows_of_each_feed_range() {
        List<ObjectNode> sample = rows(container, new SqlQuerySpec("select TOP 1000 * from c"), feedRanges(container));
        assertEquals(ITEMS, sample.size());
        for (String property : List.of("id", "pk", "n", "parity", "_rid", "_self", "_etag", "_ts", "_attachments")) {
            assertTrue(sample.stream().allMatch(row -> row.has(property)), property);
        }
    }

    @Test
    void each_physical_partition_is_a_feed_range_and_all_of_them_hold_each_row_once() {
        assertEquals(3, feedRanges(container).size());
        assertEquals(everyNumber(), numbers(rows(container, ALL, feedRanges(container))));
        assertTrue(feedRanges(container).stream().noneMatch(range -> rows(container, ALL, List.of(range)).isEmpty()));
    }

    @Test
    void a_filter_that_is_pushed_down_is_applied_on_the_server() {
        SqlQuerySpec query = new SqlQuerySpec(
            "SELECT * FROM r WHERE r['parity']=@param0 AND r['n'] IN (@param1,@param2,@param3)",
            List.of(
                new SqlParameter("@param0", "even"),
                new SqlParameter("@param1", 1),
                new SqlParameter("@param2", 2),
                new SqlParameter("@param3", 4)));
        assertEquals(List.of(2, 4), numbers(rows(container, query, feedRanges(container))));
    }

    @Test
    void the_filters_that_spark_pushes_down_are_all_understood() {
        SqlQuerySpec query = new SqlQuerySpec(
            "SELECT * FROM r WHERE (NOT (r['n']<@param0) AND r['n']<=@param1) AND IS_DEFINED(r['n']) "
                + "AND (NOT(IS_NULL(r['parity'])) OR IS_NULL(r['absent'])) AND STARTSWITH(r['parity'],@param2) "
                + "AND CONTAINS(r['pk'],@param3) AND ENDSWITH(r['parity'],@param4) AND r['n']>@param5 AND r['n']>=@param5",
            List.of(
                new SqlParameter("@param0", 3),
                new SqlParameter("@param1", 7),
                new SqlParameter("@param2", "od"),
                new SqlParameter("@param3", " of "),
                new SqlParameter("@param4", "d"),
                new SqlParameter("@param5", 4)));
        assertEquals(List.of(5, 7), numbers(rows(container, query, feedRanges(container))));
    }

    @Test
    void the_pages_of_a_feed_range_follow_one_another() {
        Stream<ObjectNode> found = feedRanges(container).stream()
            .flatMap(range -> pages(container, ALL, range, 4).stream())
            .peek(page -> assertTrue(page.getResults().size() <= 4))
            .flatMap(page -> page.getResults().stream());
        assertEquals(everyNumber(), numbers(found.toList()));
    }

    @Test
    void parts_of_physical_partitions_hold_each_row_once() {
        List<FeedRange> parts = feedRanges(container).stream()
            .flatMap(range -> parts(container, range, 4).stream())
            .toList();
        assertEquals(12, parts.size());
        assertEquals(everyNumber(), numbers(rows(container, ALL, parts)));
    }

    @Test
    void ranges_and_parts_from_before_a_split_hold_each_row_once_after_it() {
        List<FeedRange> before = feedRanges(container);
        List<FeedRange> parts = before.stream().flatMap(range -> parts(container, range, 4).stream()).toList();
        LocalAccount.split(container, "1");
        assertEquals(everyNumber(), numbers(rows(container, ALL, before)));
        assertEquals(everyNumber(), numbers(rows(container, ALL, parts)));
    }

    /** For such a part azure-cosmos 4.81.0 asks both successors without naming the bounds: whoever counts must tell by id. */
    @Test
    void a_part_that_a_later_split_cuts_in_two_also_brings_rows_of_its_neighbours() {
        FeedRange whole = feedRanges(container).get(1);
        List<FeedRange> thirds = parts(container, whole, 3);
        List<Integer> expected = numbers(rows(container, ALL, List.of(whole)));
        List<Integer> middle = numbers(rows(container, ALL, List.of(thirds.get(1))));
        LocalAccount.split(container, "1");
        assertTrue(middle.size() < expected.size());
        assertEquals(expected, numbers(rows(container, ALL, List.of(thirds.get(1)))));
    }

    @Test
    void the_usage_of_the_container_says_how_many_items_it_has() {
        String usage = container.read(new CosmosContainerRequestOptions().setQuotaInfoEnabled(true))
            .block()
            .getResponseHeaders()
            .get("x-ms-resource-usage");
        assertTrue(usage.contains("documentsCount=" + ITEMS + ";"), usage);
        assertEquals(2, usage.split("documentsCount=", -1).length);
    }

    private static List<Integer> everyNumber() {
        return IntStream.range(0, ITEMS).boxed().toList();
    }
}
