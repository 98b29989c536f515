package localcosmos;

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.models.CompositePath;
import com.azure.cosmos.models.CompositePathSortOrder;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.models.UniqueKeyPolicy;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** The local Cosmos DB under test, seen through one client that is configured as the Spark connector configures its own. */
final class LocalAccount {
    private static final String ENDPOINT = System.getProperty("account.endpoint");
    private static final String CONTAINER = "items";
    private static final int THROUGHPUT_OF_A_PARTITION = 10_000;
    private static final AtomicInteger DATABASES = new AtomicInteger();

    /** Lives as long as the process. */
    static final CosmosAsyncClient CLIENT = new CosmosClientBuilder()
        .endpoint(ENDPOINT)
        .key(System.getProperty("account.key"))
        .gatewayMode()
        .endpointDiscoveryEnabled(false)
        .contentResponseOnWriteEnabled(false)
        .buildAsyncClient();

    private LocalAccount() {
    }

    /** A container in a database of its own, with so many physical partitions and the partition key {@code /pk}. */
    static CosmosAsyncContainer createContainer(int physicalPartitions) {
        return createContainer(physicalPartitions, new UniqueKeyPolicy());
    }

    /** The same with unique keys. */
    static CosmosAsyncContainer createContainer(int physicalPartitions, UniqueKeyPolicy unique) {
        PartitionKeyDefinition key = new PartitionKeyDefinition()
            .setPaths(List.of("/pk"))
            .setVersion(PartitionKeyDefinitionVersion.V2);
        return create(physicalPartitions, new CosmosContainerProperties(CONTAINER, key).setUniqueKeyPolicy(unique));
    }

    /** The same as an application creates one that only says the path: no version is version 1. */
    static CosmosAsyncContainer createContainerOfVersion1(int physicalPartitions) {
        return create(physicalPartitions, new CosmosContainerProperties(CONTAINER, "/pk"));
    }

    private static CosmosAsyncContainer create(int physicalPartitions, CosmosContainerProperties properties) {
        String database = "java-" + DATABASES.incrementAndGet();
        ThroughputProperties throughput =
            ThroughputProperties.createManualThroughput(physicalPartitions * THROUGHPUT_OF_A_PARTITION);
        List<CompositePath> byParity = List.of(
            new CompositePath().setPath("/parity").setOrder(CompositePathSortOrder.DESCENDING),
            new CompositePath().setPath("/n").setOrder(CompositePathSortOrder.ASCENDING));
        properties.setIndexingPolicy(new IndexingPolicy().setCompositeIndexes(List.of(byParity)));
        CLIENT.createDatabase(database).block();
        CLIENT.getDatabase(database).createContainer(properties, throughput).block();
        return CLIENT.getDatabase(database).getContainer(CONTAINER);
    }

    /** Create the items {@code from} to {@code to - 1}, each with a partition key of its own. */
    static void createItems(CosmosAsyncContainer container, int from, int to) {
        for (int n = from; n < to; n++) {
            container.createItem(item(n)).block();
        }
    }

    static ObjectNode item(int n) {
        return JsonNodeFactory.instance.objectNode()
            .put("id", Integer.toString(n))
            .put("pk", "key of " + n)
            .put("n", n)
            .put("parity", n % 2 == 0 ? "even" : "odd");
    }

    static PartitionKey keyOf(int n) {
        return new PartitionKey("key of " + n);
    }

    /** Split a physical partition of a container in two, as the service does when it grows. */
    static void split(CosmosAsyncContainer container, String range) {
        String body = """
            {"database": "%s", "container": "%s", "range": "%s"}"""
            .formatted(container.getDatabase().getId(), container.getId(), range);
        HttpRequest request = HttpRequest.newBuilder(URI.create(ENDPOINT + "_admin/split"))
            .POST(BodyPublishers.ofString(body))
            .build();
        try {
            int status = HttpClient.newHttpClient().send(request, BodyHandlers.discarding()).statusCode();
            if (status != 200) {
                throw new IllegalStateException("The emulator refused to split the range with status " + status);
            }
        } catch (IOException | InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}
