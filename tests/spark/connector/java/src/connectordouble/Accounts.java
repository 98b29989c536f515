package connectordouble;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.GatewayConnectionConfig;
import com.azure.cosmos.ThrottlingRetryOptions;
import com.azure.cosmos.ThroughputControlGroupConfigBuilder;
import com.azure.cosmos.spark.Documents;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;

/** Opens containers. There is one client for each account, which lives as long as the process. */
public final class Accounts implements Function<Map<String, String>, Documents> {
    private static final int SENDS_WHEN_THROTTLED = 6;

    private final Map<List<String>, CosmosAsyncClient> clients = new ConcurrentHashMap<>();

    public Accounts() {
        System.setProperty("COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED", "true");
    }

    @Override
    public Documents apply(Map<String, String> options) {
        CosmosAsyncContainer container = clients
            .computeIfAbsent(List.of(of(options, "accountEndpoint"), of(options, "accountKey")), Accounts::client)
            .getDatabase(of(options, "database"))
            .getContainer(of(options, "container"));
        String page = options.getOrDefault("spark.cosmos.read.maxItemCount", "1000");
        return new Container(container, Integer.parseInt(page), group(container, options));
    }

    private static CosmosAsyncClient client(List<String> account) {
        return new CosmosClientBuilder()
            .endpoint(account.get(0))
            .key(account.get(1))
            .gatewayMode(new GatewayConnectionConfig())
            .endpointDiscoveryEnabled(false)
            .consistencyLevel(ConsistencyLevel.EVENTUAL)
            .contentResponseOnWriteEnabled(false)
            .throttlingRetryOptions(new ThrottlingRetryOptions()
                .setMaxRetryAttemptsOnThrottledRequests(SENDS_WHEN_THROTTLED)
                .setMaxRetryWaitTime(Duration.ofSeconds(SENDS_WHEN_THROTTLED)))
            .buildAsyncClient();
    }

    /** The name of the group of requests that have a rate together; null without a rate. */
    private static String group(CosmosAsyncContainer container, Map<String, String> options) {
        if (!"true".equals(of(options, "throughputControl.enabled"))) {
            return null;
        }
        String name = of(options, "throughputControl.name");
        container.enableLocalThroughputControlGroup(new ThroughputControlGroupConfigBuilder()
            .groupName(name)
            .targetThroughput(Integer.parseInt(of(options, "throughputControl.targetThroughput")))
            .build());
        return name;
    }

    private static String of(Map<String, String> options, String name) {
        return options.get("spark.cosmos." + name);
    }
}
