package localcosmos;

import static localcosmos.LocalAccount.item;
import static localcosmos.LocalAccount.keyOf;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.PartitionKey;
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
    void a_delete_with_the_current_etag_deletes() {
        String etag = container.createItem(item(1)).block().getETag();
        assertEquals(204, delete(1, etag).getStatusCode());
        assertEquals(404, status(() -> read(1)));
    }

    @Test
    void a_delete_with_a_stale_etag_says_412_and_keeps_the_item() {
        String stale = container.createItem(item(1)).block().getETag();
        container.upsertItem(item(1)).block();
        assertEquals(412, status(() -> delete(1, stale)));
        assertEquals(1, read(1).get("n").asInt());
    }

    @Test
    void a_delete_of_an_absent_item_says_404_with_an_etag_or_without() {
        assertEquals(404, status(() -> delete(1, null)));
        assertEquals(404, status(() -> delete(1, "\"x\"")));
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
}
