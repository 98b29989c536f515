package com.azure.cosmos.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** Deletes the documents that rows name, unless they have changed. Neither driver nor job learns what became of each. */
record ItemsDelete(Options options) implements Write, BatchWrite {
    @Override
    public BatchWrite toBatch() {
        return this;
    }

    @Override
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
        return new Writers(options);
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
        // Deletes are done when their task has ended.
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {
        // Nor can they be taken back.
    }

    private record Writers(Options options) implements DataWriterFactory {
        @Override
        public DataWriter<InternalRow> createWriter(int partition, long task) {
            return new Writer(options, new ArrayList<>());
        }
    }

    private record Done() implements WriterCommitMessage {
    }

    private record Writer(Options options, List<String> rows) implements DataWriter<InternalRow> {
        @Override
        public void write(InternalRow row) {
            rows.add(row.getString(0));
        }

        @Override
        public WriterCommitMessage commit() {
            if (!rows.isEmpty()) {
                Documents.of(options).delete(rows);
            }
            return new Done();
        }

        @Override
        public void abort() {
            rows.clear();
        }

        @Override
        public void close() {
            rows.clear();
        }
    }
}
