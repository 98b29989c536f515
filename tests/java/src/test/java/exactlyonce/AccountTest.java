package exactlyonce;

import static exactlyonce.LocalAccount.item;
import static exactlyonce.LocalAccount.keyOf;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.fasterxml.jackson.databind.node.ObjectNode;
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

    private static CosmosItemResponse<ObjectNode> read(CosmosAsyncContainer container, ConsistencyLevel level) {
        CosmosItemRequestOptions options = new CosmosItemRequestOptions().setConsistencyLevel(level);
        return container.readItem("1", keyOf(1), options, ObjectNode.class).block();
    }
}
