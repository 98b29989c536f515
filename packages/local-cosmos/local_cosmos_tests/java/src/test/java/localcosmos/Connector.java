package localcosmos;

import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.implementation.ImplementationBridgeHelpers.CosmosAsyncContainerHelper;
import com.azure.cosmos.implementation.ImplementationBridgeHelpers.CosmosQueryRequestOptionsHelper;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.SqlQuerySpec;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/** Reads as azure-cosmos-spark makes them: by feed range, and never with a query plan. */
final class Connector {
    /** Its default for {@code spark.cosmos.read.maxItemCount}. */
    static final int PAGE_SIZE = 1000;

    private Connector() {
    }

    static List<FeedRange> feedRanges(CosmosAsyncContainer container) {
        return container.getFeedRanges().block();
    }

    /** Parts of a feed range: what the partitioning strategies {@code Custom} and {@code Aggressive} plan. */
    static List<FeedRange> parts(CosmosAsyncContainer container, FeedRange range, int count) {
        return CosmosAsyncContainerHelper.getCosmosAsyncContainerAccessor()
            .trySplitFeedRange(container, range, count)
            .block();
    }

    static List<FeedResponse<ObjectNode>> pages(
        CosmosAsyncContainer container, SqlQuerySpec query, FeedRange range, int pageSize) {
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setFeedRange(range);
        CosmosQueryRequestOptionsHelper.getCosmosQueryRequestOptionsAccessor().disallowQueryPlanRetrieval(options);
        return container.queryItems(query, options, ObjectNode.class).byPage(pageSize).collectList().block();
    }

    /** The rows of all ranges, one range after the other. */
    static List<ObjectNode> rows(CosmosAsyncContainer container, SqlQuerySpec query, List<FeedRange> ranges) {
        return ranges.stream()
            .flatMap(range -> pages(container, query, range, PAGE_SIZE).stream())
            .flatMap(page -> page.getResults().stream())
            .toList();
    }

    /** The numbers {@code n} of rows, ascending, doubles included. */
    static List<Integer> numbers(List<ObjectNode> rows) {
        return rows.stream().map(row -> row.get("n").asInt()).sorted().toList();
    }
}
