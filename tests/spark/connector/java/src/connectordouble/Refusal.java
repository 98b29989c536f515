package connectordouble;

import com.azure.cosmos.BridgeInternal;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosBulkItemResponse;
import com.azure.cosmos.models.CosmosBulkOperationResponse;
import java.util.Map;

/** The refusal of one operation of a bulk, for which the SDK has no exception. */
final class Refusal extends CosmosException {
    private Refusal(CosmosBulkItemResponse response) {
        super(response.getStatusCode(), "refused in a bulk", Map.of(), null);
        BridgeInternal.setSubStatusCode(this, response.getSubStatusCode());
    }

    /** What became of a delete; null if the document is deleted (2xx), was gone (404), or has changed (412). */
    static CosmosException of(CosmosBulkOperationResponse<?> one) {
        if (one.getResponse() == null) {
            if (one.getException() instanceof CosmosException refusal) {
                return isSkipped(refusal.getStatusCode(), refusal.getSubStatusCode()) ? null : refusal;
            }
            throw new IllegalStateException(one.getException());
        }
        CosmosBulkItemResponse response = one.getResponse();
        boolean done = response.isSuccessStatusCode() || isSkipped(response.getStatusCode(), response.getSubStatusCode());
        return done ? null : new Refusal(response);
    }

    private static boolean isSkipped(int status, int substatus) {
        return status == 412 || (status == 404 && substatus == 0);
    }
}
