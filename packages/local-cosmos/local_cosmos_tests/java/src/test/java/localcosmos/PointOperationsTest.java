package localcosmos;

import static localcosmos.LocalAccount.item;
import static localcosmos.LocalAccount.keyOf;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.UniqueKey;
import com.azure.cosmos.models.UniqueKeyPolicy;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class PointOperationsTest {
    private CosmosAsyncContainer container;

    @BeforeEach
    void create() {
        container = LocalAccount.createContainer(3);
    }

    @Test
    void a_delete_says_412_to_a_stale_etag_and_404_once_the_current_one_has_deleted_the_item() {
        String stale = container.createItem(item(1)).block().getETag();
        String current = container.upsertItem(item(1)).block().getETag();
        assertEquals(412, status(() -> delete(1, stale)));
        assertEquals(1, read(1).get("n").asInt());
        assertEquals(204, delete(1, current).getStatusCode());
        assertEquals(404, status(() -> read(1)));
        assertEquals(404, status(() -> delete(1, null)));
        assertEquals(404, status(() -> delete(1, current)));
    }

    @Test
    void a_second_create_says_409_and_an_upsert_replaces() {
        assertEquals(201, container.createItem(item(1)).block().getStatusCode());
        assertEquals(409, status(() -> container.createItem(item(1)).block()));
        assertEquals(200, container.upsertItem(item(1).put("n", 2)).block().getStatusCode());
        assertEquals(2, read(1).get("n").asInt());
    }

    @Test
    void a_unique_key_that_is_taken_says_409_to_every_kind_of_write_and_in_a_batch() {
        UniqueKey byEmail = new UniqueKey(List.of("/email"));
        container = LocalAccount.createContainer(1, new UniqueKeyPolicy().setUniqueKeys(List.of(byEmail)));
        assertEquals(List.of("/email"), container.read().block().getProperties()
            .getUniqueKeyPolicy().getUniqueKeys().get(0).getPaths());
        container.createItem(person("a", "a@x")).block();
        container.createItem(person("b", "b@x")).block();
        PartitionKey key = new PartitionKey("p");
        CosmosPatchOperations change = CosmosPatchOperations.create().set("/email", "a@x");
        assertEquals(409, status(() -> container.createItem(person("c", "a@x")).block()));
        assertEquals(409, status(() -> container.upsertItem(person("b", "a@x")).block()));
        assertEquals(409, status(() -> container.replaceItem(person("b", "a@x"), "b", key).block()));
        assertEquals(409, status(() -> container.patchItem("b", key, change, ObjectNode.class).block()));
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key);
        batch.createItemOperation(person("c", "c@x"));
        batch.replaceItemOperation("b", person("b", "a@x"));
        CosmosBatchResponse refused = container.executeCosmosBatch(batch).block();
        assertEquals(List.of(424, 409), refused.getResults().stream().map(one -> one.getStatusCode()).toList());
    }

    @Test
    void a_patch_sets_and_increments() {
        container.createItem(item(1)).block();
        CosmosPatchOperations changes = CosmosPatchOperations.create().set("/parity", "changed").increment("/n", 2);
        container.patchItem("1", keyOf(1), changes, ObjectNode.class).block();
        assertEquals("changed", read(1).get("parity").asText());
        assertEquals(3, read(1).get("n").asInt());
    }

    @Test
    void ids_with_blanks_and_letters_of_all_kinds_are_found_again() {
        String id = "a b+ü%20€";
        container.createItem(item(1).put("id", id)).block();
        assertEquals(id, container.readItem(id, keyOf(1), ObjectNode.class).block().getItem().get("id").asText());
    }

    @Test
    void many_items_are_read_at_once_over_all_partitions_and_absent_ones_are_left_out() {
        LocalAccount.createItems(container, 0, 30);
        List<CosmosItemIdentity> wanted = IntStream.range(10, 40)
            .mapToObj(n -> new CosmosItemIdentity(keyOf(n), Integer.toString(n)))
            .toList();
        List<ObjectNode> found = container.readMany(wanted, ObjectNode.class).block().getResults();
        assertEquals(IntStream.range(10, 30).boxed().toList(), Connector.numbers(found));
    }

    @Test
    void a_container_is_created_without_a_version_of_its_partition_key() {
        CosmosAsyncContainer container = LocalAccount.createContainerOfVersion1(3);
        PartitionKeyDefinition key = container.read().block().getProperties().getPartitionKeyDefinition();
        assertNotEquals(PartitionKeyDefinitionVersion.V2, key.getVersion());
        assertEquals("/pk", key.getPaths().get(0));
        LocalAccount.createItems(container, 0, 12);
        for (int n = 0; n < 12; n++) {
            String id = Integer.toString(n);
            assertEquals(id, container.readItem(id, keyOf(n), ObjectNode.class).block().getItem().get("id").asText());
            assertEquals(List.of(n), numbers(container, new CosmosQueryRequestOptions().setPartitionKey(keyOf(n))));
        }
        List<Integer> all = numbers(container, new CosmosQueryRequestOptions());
        assertEquals(IntStream.range(0, 12).boxed().toList(), all);
    }

    @Test
    void the_level_of_the_account_is_session_and_a_read_may_ask_for_less_but_not_for_more() {
        CosmosAsyncContainer container = LocalAccount.createContainer(1);
        container.createItem(item(1)).block();
        assertEquals(200, read(container, null).getStatusCode());
        assertEquals(200, read(container, ConsistencyLevel.EVENTUAL).getStatusCode());
        CosmosException refused =
            assertThrows(CosmosException.class, () -> read(container, ConsistencyLevel.STRONG));
        assertEquals(400, refused.getStatusCode());
    }

    @Test
    void a_read_sends_the_session_token_of_the_write_before_it() {
        CosmosAsyncContainer container = LocalAccount.createContainer(2);
        String written = container.createItem(item(1)).block().getSessionToken();
        assertEquals(written, read(container, null).getSessionToken());
    }

    private static ObjectNode person(String id, String email) {
        return item(0).put("id", id).put("pk", "p").put("email", email);
    }

    private CosmosItemResponse<Object> delete(int n, String etag) {
        CosmosItemRequestOptions options = new CosmosItemRequestOptions().setIfMatchETag(etag);
        return container.deleteItem(Integer.toString(n), keyOf(n), options).block();
    }

    private ObjectNode read(int n) {
        return container.readItem(Integer.toString(n), keyOf(n), ObjectNode.class).block().getItem();
    }

    private static int status(Executable operation) {
        return assertThrows(CosmosException.class, operation).getStatusCode();
    }

    private static List<Integer> numbers(CosmosAsyncContainer container, CosmosQueryRequestOptions options) {
        String query = "SELECT VALUE c.n FROM c ORDER BY c.n";
        return container.queryItems(query, options, Integer.class).collectList().block();
    }

    private static CosmosItemResponse<ObjectNode> read(CosmosAsyncContainer container, ConsistencyLevel level) {
        CosmosItemRequestOptions options = new CosmosItemRequestOptions().setConsistencyLevel(level);
        return container.readItem("1", keyOf(1), options, ObjectNode.class).block();
    }
}
