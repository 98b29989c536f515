package connectordouble;

import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.implementation.ImplementationBridgeHelpers.CosmosQueryRequestOptionsHelper;
import com.azure.cosmos.models.CosmosBulkExecutionOptions;
import com.azure.cosmos.models.CosmosBulkItemRequestOptions;
import com.azure.cosmos.models.CosmosBulkOperationResponse;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.spark.Documents;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import reactor.core.publisher.Flux;

/**
 * The connector's calls of the Java SDK.
 *
 * @param pageSize most rows of a page.
 * @param group the group of requests that have a rate together; null without a rate.
 */
record Container(CosmosAsyncContainer container, int pageSize, String group) implements Documents {
    private static final int SENDS = 4;
    private static final ObjectMapper JSON = new ObjectMapper();

    @Override
    public List<String> ranges() {
        return container.getFeedRanges().block().stream().map(FeedRange::toString).toList();
    }

    @Override
    public Iterator<String> query(String text, String range) {
        return new Rows(text, FeedRange.fromString(range));
    }

    @Override
    public void delete(List<String> documents) {
        PartitionKeyDefinition key = container.read().block().getProperties().getPartitionKeyDefinition();
        List<CosmosItemOperation> waiting = documents.stream().map(one -> delete(one, key)).toList();
        for (int sends = 1; !waiting.isEmpty(); sends++) {
            waiting = send(waiting, sends < SENDS);
        }
    }

    private static CosmosItemOperation delete(String document, PartitionKeyDefinition key) {
        Map<String, Object> parts;
        try {
            parts = JSON.readValue(document, new TypeReference<>() { });
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(error);
        }
        return CosmosBulkOperations.getDeleteItemOperation(
            (String) parts.get("id"),
            PartitionKey.fromItem(parts, key),
            new CosmosBulkItemRequestOptions().setIfMatchETag((String) parts.get("_etag")));
    }

    /** Send deletes in bulk. Returns those that have to be sent again, if that is allowed. */
    private List<CosmosItemOperation> send(List<CosmosItemOperation> deletes, boolean again) {
        CosmosBulkExecutionOptions options = new CosmosBulkExecutionOptions();
        if (group != null) {
            options.setThroughputControlGroupName(group);
        }
        List<CosmosItemOperation> failed = new ArrayList<>();
        for (CosmosBulkOperationResponse<Object> one
            : container.executeBulkOperations(Flux.fromIterable(deletes), options).collectList().block()) {
            CosmosException refusal = Refusal.of(one);
            if (refusal == null) {
                continue;
            }
            if (!again || !isPassing(refusal)) {
                throw refusal;
            }
            failed.add(one.getOperation());
        }
        return failed;
    }

    /** Whether the same request may succeed later. The SDK has sent it again, too. */
    private static boolean isPassing(CosmosException error) {
        return switch (error.getStatusCode()) {
            case 408, 410, 500, 503 -> true;
            case 404 -> error.getSubStatusCode() == 1002;
            default -> false;
        };
    }

    /** The rows of all pages. After trouble it goes on behind the last page that came. */
    private final class Rows implements Iterator<String> {
        private final String text;
        private final FeedRange range;
        private Iterator<FeedResponse<ObjectNode>> pages;
        private Iterator<ObjectNode> page = Collections.emptyIterator();
        private String continuation;

        Rows(String text, FeedRange range) {
            this.text = text;
            this.range = range;
            this.pages = pages();
        }

        @Override
        public boolean hasNext() {
            for (int sends = 1; !page.hasNext(); sends++) {
                try {
                    if (!pages.hasNext()) {
                        return false;
                    }
                    FeedResponse<ObjectNode> came = pages.next();
                    page = came.getResults().iterator();
                    continuation = came.getContinuationToken();
                    sends = 0;
                } catch (CosmosException error) {
                    if (sends >= SENDS || !isPassing(error)) {
                        throw error;
                    }
                    pages = pages();
                }
            }
            return true;
        }

        @Override
        public String next() {
            return page.next().toString();
        }

        private Iterator<FeedResponse<ObjectNode>> pages() {
            CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setFeedRange(range);
            CosmosQueryRequestOptionsHelper.getCosmosQueryRequestOptionsAccessor().disallowQueryPlanRetrieval(options);
            if (group != null) {
                options.setThroughputControlGroupName(group);
            }
            return container.queryItems(text, options, ObjectNode.class)
                .byPage(continuation, pageSize)
                .toIterable(1)
                .iterator();
        }
    }
}
