package com.azure.cosmos.spark;

import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A container to Spark. */
record ItemsTable(Options options) implements SupportsRead, SupportsWrite {
    @Override
    public String name() {
        return "the double of the connector, container " + options.get("container");
    }

    @Override
    public StructType schema() {
        return CosmosItemsDataSource.RAW;
    }

    @Override
    public Set<TableCapability> capabilities() {
        return Set.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap same) {
        options.require("read.partitioning.strategy", "Restrictive", "Default");
        options.require("read.forceEventualConsistency", "true", "true");
        return () -> new ItemsScan(options, options.get("read.customQuery"));
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        options.require("write.strategy", "ItemDeleteIfNotModified", "ItemOverwrite");
        options.require("write.bulk.enabled", "true", "true");
        return new WriteBuilder() {
            @Override
            public Write build() {
                return new ItemsDelete(options);
            }
        };
    }
}
