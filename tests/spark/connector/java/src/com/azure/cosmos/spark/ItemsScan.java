package com.azure.cosmos.spark;

import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** Reads the results of a query, one task for each physical partition, and each result as JSON text. */
record ItemsScan(Options options, String query) implements Scan, Batch {
    @Override
    public StructType readSchema() {
        return CosmosItemsDataSource.RAW;
    }

    @Override
    public String description() {
        return query;
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
        return Documents.of(options).ranges().stream().map(Range::new).toArray(InputPartition[]::new);
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new Readers(options, query);
    }

    private record Range(String text) implements InputPartition {
    }

    private record Readers(Options options, String query) implements PartitionReaderFactory {
        @Override
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            return new Reader(Documents.of(options).query(query, ((Range) partition).text()));
        }
    }

    private record Reader(Iterator<String> rows) implements PartitionReader<InternalRow> {
        @Override
        public boolean next() {
            return rows.hasNext();
        }

        @Override
        public InternalRow get() {
            return new GenericInternalRow(new Object[] {UTF8String.fromString(rows.next())});
        }

        @Override
        public void close() {
            // A page that nobody takes needs no closing.
        }
    }
}
