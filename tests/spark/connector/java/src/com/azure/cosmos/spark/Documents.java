package com.azure.cosmos.spark;

import java.util.Iterator;
import java.util.List;

/** What Spark's side asks of a container. Arguments and results are classes of Java: see {@link Sdk}. */
public interface Documents {
    /** The feed ranges, one for each physical partition. */
    List<String> ranges();

    /** The results of a query in a feed range, as JSON. */
    Iterator<String> query(String text, String range);

    /** Delete documents, of which each has {@code id}, {@code _etag} and the partition key. */
    void delete(List<String> documents);

    /** The documents of the container that options name. */
    static Documents of(Options options) {
        return Sdk.open(options.all());
    }
}
