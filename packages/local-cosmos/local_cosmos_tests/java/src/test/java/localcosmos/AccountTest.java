package localcosmos;

import static localcosmos.LocalAccount.item;
import static localcosmos.LocalAccount.keyOf;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class AccountTest {
    @Test
    void the_container_says_where_the_partition_key_is_and_which_hash_it_has() {
        PartitionKeyDefinition key =
            LocalAccount.createContainer(1).read().block().getProperties().getPartitionKeyDefinition();
        assertEquals("/pk", key.getPaths().get(0));
        assertEquals(PartitionKeyDefinitionVersion.V2, key.getVersion());
    }

    @Test
    void a_container_is_created_without_a_version_of_its_partition_key() {
        CosmosAsyncContainer container = LocalAccount.createContainerOfVersion1(3);
        PartitionKeyDefinition key = container.read().block().getProperties().getPartitionKeyDefinition();
        assertNotEquals(PartitionKeyDefinitionVersion.V2, key.getVersion());
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

    private static List<Integer> numbers(CosmosAsyncContainer container, CosmosQueryRequestOptions options) {
        String query = "SELECT VALUE c.n FROM c ORDER BY c.n";
        return container.queryItems(query, options, Integer.class).collectList().block();
    }

    private static CosmosItemResponse<ObjectNode> read(CosmosAsyncContainer container, ConsistencyLevel level) {
        CosmosItemRequestOptions options = new CosmosItemRequestOptions().setConsistencyLevel(level);
        return container.readItem("1", keyOf(1), options, ObjectNode.class).block();
    }
}
