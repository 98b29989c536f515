package localcosmos;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.PartitionKey;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The example of docs/connect.md. */
class ConnectTest {
    @Test
    void a_program_connects() {
        String endpoint = System.getProperty("account.endpoint");
        String key = System.getProperty("account.key");

        try (CosmosClient client = new CosmosClientBuilder().endpoint(endpoint).key(key).gatewayMode().buildClient()) {
            client.createDatabaseIfNotExists("shop");
            CosmosDatabase shop = client.getDatabase("shop");
            shop.createContainerIfNotExists("orders", "/customer");
            CosmosContainer orders = shop.getContainer("orders");
            orders.upsertItem(Map.of("id", "1", "customer", "ada"));
            Map<?, ?> order = orders.readItem("1", new PartitionKey("ada"), Map.class).getItem();
            assertEquals("ada", order.get("customer"));
        }
    }
}
