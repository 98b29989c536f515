package localcosmos;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.Test;

/** The example of docs/trouble.md. */
class TroubleTest {
    @Test
    void a_write_is_applied_whose_reply_is_lost() throws Exception {
        CosmosAsyncContainer container = LocalAccount.createContainer(1);
        String database = container.getDatabase().getId();
        String endpoint = System.getProperty("account.endpoint");
        ObjectNode order = JsonNodeFactory.instance.objectNode().put("id", "1").put("pk", "ada");

        HttpClient http = HttpClient.newHttpClient();
        String rule = """
            {"database": "%s", "operations": ["create"], "when": "after", "action": "status", "status": 503, "times": 1}
            """.formatted(database);
        HttpRequest arm = HttpRequest.newBuilder(URI.create(endpoint + "_admin/faults"))
            .POST(HttpRequest.BodyPublishers.ofString(rule)).build();
        assertEquals(200, http.send(arm, HttpResponse.BodyHandlers.ofString()).statusCode());

        CosmosException lost = assertThrows(CosmosException.class, () -> container.createItem(order).block());
        assertEquals(503, lost.getStatusCode());
        assertEquals(200, container.readItem("1", new PartitionKey("ada"), ObjectNode.class).block().getStatusCode());
    }
}
