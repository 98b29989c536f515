package localcosmos;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Queries for which the SDK asks for a plan: those a user of the connector gives as a custom query or for the schema. */
class QueryPlansTest {
    private static final int ITEMS = 40;

    private static CosmosAsyncContainer container;

    @BeforeAll
    static void fill() {
        container = LocalAccount.createContainer(3);
        LocalAccount.createItems(container, 0, ITEMS);
    }

    @Test
    void rows_come_in_one_order_over_all_partitions() {
        assertEquals(range(0, ITEMS), integers("SELECT VALUE c.n FROM c ORDER BY c.n"));
        assertEquals(
            IntStream.range(0, ITEMS).map(n -> ITEMS - 1 - n).boxed().toList(),
            integers("SELECT VALUE c.n FROM c ORDER BY c.n DESC"));
    }

    @Test
    void rows_come_in_the_order_of_several_paths() {
        List<Integer> odd = IntStream.range(0, ITEMS).filter(n -> n % 2 == 1).boxed().toList();
        List<Integer> even = IntStream.range(0, ITEMS).filter(n -> n % 2 == 0).boxed().toList();
        assertEquals(
            Stream.concat(odd.stream(), even.stream()).toList(),
            integers("SELECT VALUE c.n FROM c ORDER BY c.parity DESC, c.n ASC"));
    }

    @Test
    void limits_count_over_all_partitions() {
        assertEquals(List.of(39, 38, 37), integers("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC"));
        assertEquals(List.of(5, 6, 7), integers("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 3"));
        assertEquals(7, integers("SELECT TOP 7 VALUE c.n FROM c").size());
        assertEquals(10, integers("SELECT VALUE c.n FROM c OFFSET 30 LIMIT 20").size());
    }

    @Test
    void aggregates_are_those_of_all_partitions() {
        assertEquals(List.of(40), integers("SELECT VALUE COUNT(1) FROM c"));
        assertEquals(List.of(0), integers("SELECT VALUE COUNT(1) FROM c WHERE c.n = 100"));
        assertEquals(List.of(780), integers("SELECT VALUE SUM(c.n) FROM c"));
        assertEquals(List.of(1), integers("SELECT VALUE MIN(c.n) FROM c WHERE c.parity = 'odd'"));
        assertEquals(List.of(39), integers("SELECT VALUE MAX(c.n) FROM c"));
        assertEquals(19.5, query("SELECT VALUE AVG(c.n) FROM c").get(0).asDouble());
        assertEquals(2.0, query("SELECT VALUE AVG(c.n) FROM c WHERE c.n < 5").get(0).asDouble());
    }

    @Test
    void several_aggregates_come_in_one_row() {
        JsonNode row = query("SELECT COUNT(1) AS number, MAX(c.n) AS most, AVG(c.n) AS mean FROM c").get(0);
        assertEquals(40, row.get("number").asInt());
        assertEquals(39, row.get("most").asInt());
        assertEquals(19.5, row.get("mean").asDouble());
    }

    @Test
    void groups_are_made_over_all_partitions() {
        List<JsonNode> rows = query("SELECT c.parity, COUNT(1) AS number, SUM(c.n) AS total FROM c GROUP BY c.parity");
        assertEquals(2, rows.size());
        for (JsonNode row : rows) {
            assertEquals(20, row.get("number").asInt());
            assertEquals(row.get("parity").asText().equals("even") ? 380 : 400, row.get("total").asInt());
        }
        assertEquals(List.of(20, 20), integers("SELECT VALUE COUNT(1) FROM c GROUP BY c.parity"));
    }

    @Test
    void values_that_repeat_come_once() {
        assertEquals(
            List.of("even", "odd"),
            query("SELECT DISTINCT VALUE c.parity FROM c").stream().map(JsonNode::asText).sorted().toList());
        assertEquals(
            List.of("odd", "even"),
            query("SELECT DISTINCT VALUE c.parity FROM c ORDER BY c.parity DESC").stream().map(JsonNode::asText).toList());
    }

    @Test
    void parameters_reach_the_rewritten_query() {
        SqlQuerySpec query = new SqlQuerySpec(
            "SELECT TOP @few VALUE c.n FROM c WHERE c.n >= @least ORDER BY c.n",
            List.of(new SqlParameter("@few", 2), new SqlParameter("@least", 20)));
        List<JsonNode> rows =
            container.queryItems(query, new CosmosQueryRequestOptions(), JsonNode.class).collectList().block();
        assertEquals(List.of(20, 21), rows.stream().map(JsonNode::asInt).toList());
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "SELECT VALUE c.n FROM c ORDER BY c.n DESC",
        "SELECT VALUE c.n FROM c ORDER BY c.parity",
        "SELECT VALUE c.n FROM c ORDER BY c.parity DESC",
        "SELECT VALUE c.n FROM c ORDER BY c.absent",
        "SELECT VALUE c.n FROM c ORDER BY c.parity DESC, c.n",
        "SELECT VALUE c.n FROM c WHERE c.n >= 5 ORDER BY c.parity OFFSET 3 LIMIT 25",
        "SELECT VALUE c.n FROM c WHERE c.n >= 5 OR c.n = 2 ORDER BY c.parity DESC, c.n",
        "SELECT VALUE c.n FROM c",
        "SELECT TOP 11 VALUE c.n FROM c ORDER BY c.n",
    })
    void a_query_that_goes_on_from_a_token_page_by_page_gives_what_it_gives_at_once(String query) {
        List<Integer> paged = new ArrayList<>();
        String token = null;
        do {
            FeedResponse<JsonNode> page = container
                .queryItems(query, new CosmosQueryRequestOptions(), JsonNode.class)
                .byPage(token, 3)
                .blockFirst();
            page.getResults().forEach(row -> paged.add(row.asInt()));
            token = page.getContinuationToken();
        } while (token != null);
        assertEquals(integers(query), paged);
    }

    @Test
    void one_feed_range_is_asked_alone() {
        List<Integer> found = new ArrayList<>();
        for (var range : Connector.feedRanges(container)) {
            CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setFeedRange(range);
            List<Integer> part = container.queryItems("SELECT VALUE c.n FROM c ORDER BY c.n", options, JsonNode.class)
                .map(JsonNode::asInt)
                .collectList()
                .block();
            assertEquals(part.stream().sorted().toList(), part);
            found.addAll(part);
        }
        assertEquals(range(0, ITEMS), found.stream().sorted().toList());
    }

    @Test
    void one_partition_key_is_asked_alone() {
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setPartitionKey(LocalAccount.keyOf(3));
        List<JsonNode> rows = container.queryItems("SELECT VALUE MAX(c.n) FROM c", options, JsonNode.class)
            .collectList()
            .block();
        assertEquals(List.of(3), rows.stream().map(JsonNode::asInt).toList());
    }

    private static List<JsonNode> query(String text) {
        return container.queryItems(text, new CosmosQueryRequestOptions(), JsonNode.class).collectList().block();
    }

    private static List<Integer> integers(String text) {
        return query(text).stream().map(JsonNode::asInt).toList();
    }

    private static List<Integer> range(int from, int to) {
        return IntStream.range(from, to).boxed().toList();
    }
}
