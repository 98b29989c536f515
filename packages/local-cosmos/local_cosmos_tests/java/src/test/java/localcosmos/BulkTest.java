package localcosmos;

import static com.azure.cosmos.models.CosmosBulkOperations.getDeleteItemOperation;
import static com.azure.cosmos.models.CosmosBulkOperations.getPatchItemOperation;
import static com.azure.cosmos.models.CosmosBulkOperations.getUpsertItemOperation;
import static localcosmos.LocalAccount.item;
import static localcosmos.LocalAccount.keyOf;
import static java.util.stream.Collectors.toMap;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.models.CosmosBulkItemRequestOptions;
import com.azure.cosmos.models.CosmosBulkPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.SqlQuerySpec;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;

class BulkTest {
    private static final String STALE = "\"00000000-0000-0000-0000-000000000000\"";

    private CosmosAsyncContainer container;

    @BeforeEach
    void create() {
        container = LocalAccount.createContainer(3);
    }

    @Test
    void hundreds_of_upserts_with_mixed_keys_are_all_done() {
        Map<String, Integer> statuses = perform(IntStream.range(0, 250).mapToObj(BulkTest::upsert));
        assertEquals(250, statuses.size());
        assertEquals(250, statuses.values().stream().filter(status -> status == 201).count());
        assertEquals(IntStream.range(0, 250).boxed().toList(), Connector.numbers(read()));
    }

    @Test
    void a_delete_with_a_stale_etag_says_412_and_keeps_the_item_while_the_others_go() {
        LocalAccount.createItems(container, 0, 4);
        Map<String, Integer> statuses = perform(
            read().stream().map(row -> delete(row, row.get("n").asInt() == 2 ? STALE : row.get("_etag").asText())));
        assertEquals(Map.of("0", 204, "1", 204, "2", 412, "3", 204), statuses);
        assertEquals(List.of(2), Connector.numbers(read()));
    }

    @Test
    void a_delete_of_an_absent_item_says_404() {
        assertEquals(Map.of("7", 404), perform(Stream.of(getDeleteItemOperation("7", keyOf(7)))));
    }

    @Test
    void a_patch_with_the_etag_that_was_read_changes_the_item_and_a_stale_one_does_not() {
        LocalAccount.createItems(container, 0, 3);
        Map<String, Integer> statuses = perform(
            read().stream().map(row -> patch(row, row.get("n").asInt() == 1 ? STALE : row.get("_etag").asText())));
        assertEquals(Map.of("0", 200, "1", 412, "2", 200), statuses);
        assertEquals(List.of(1, 100, 102), Connector.numbers(read()));
        assertEquals(2, read().stream().filter(row -> row.path("seen").asBoolean()).count());
    }

    @Test
    void operations_find_their_partition_after_a_split() {
        LocalAccount.createItems(container, 0, 30);
        List<ObjectNode> rows = read();
        LocalAccount.split(container, "0");
        LocalAccount.split(container, "2");
        Map<String, Integer> statuses = perform(rows.stream().map(row -> delete(row, row.get("_etag").asText())));
        assertEquals(30, statuses.values().stream().filter(status -> status == 204).count());
        assertTrue(read().isEmpty());
    }

    private Map<String, Integer> perform(Stream<CosmosItemOperation> operations) {
        return container.executeBulkOperations(Flux.fromStream(operations))
            .collectList()
            .block()
            .stream()
            .collect(toMap(done -> idOf(done.getOperation()), done -> done.getResponse().getStatusCode()));
    }

    private List<ObjectNode> read() {
        return Connector.rows(container, new SqlQuerySpec("SELECT * FROM c"), Connector.feedRanges(container));
    }

    private static String idOf(CosmosItemOperation operation) {
        return operation.getId() == null ? operation.<ObjectNode>getItem().get("id").asText() : operation.getId();
    }

    private static CosmosItemOperation upsert(int n) {
        return getUpsertItemOperation(item(n), keyOf(n));
    }

    private static CosmosItemOperation delete(ObjectNode row, String etag) {
        CosmosBulkItemRequestOptions options = new CosmosBulkItemRequestOptions().setIfMatchETag(etag);
        return getDeleteItemOperation(row.get("id").asText(), keyOf(row.get("n").asInt()), options);
    }

    private static CosmosItemOperation patch(ObjectNode row, String etag) {
        CosmosPatchOperations changes = CosmosPatchOperations.create().increment("/n", 100).set("/seen", true);
        CosmosBulkPatchItemRequestOptions options = new CosmosBulkPatchItemRequestOptions();
        options.setIfMatchETag(etag);
        return getPatchItemOperation(row.get("id").asText(), keyOf(row.get("n").asInt()), changes, options);
    }
}
