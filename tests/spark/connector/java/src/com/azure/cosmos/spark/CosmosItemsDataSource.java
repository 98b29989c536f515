package com.azure.cosmos.spark;

import java.util.Arrays;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A double of the data source of azure-cosmos-spark, with its names, for tests.
 *
 * <p>It takes the connector's options, makes its calls of the Java SDK, and fails with the SDK's exceptions. It does only what
 * the Spark jobs ask for, and refuses the rest. It differs from the connector in four ways: it reaches the account by the
 * gateway and over plain http, and has an account key as its only identity; a task sends its deletes when it has all of them;
 * and it gives up soon, where the connector sends throttled requests for ever and others for minutes.
 */
public final class CosmosItemsDataSource implements TableProvider, DataSourceRegister {
    static final StructType RAW = new StructType().add("_rawBody", DataTypes.StringType);

    @Override
    public String shortName() {
        return "cosmos.oltp";
    }

    @Override
    public boolean supportsExternalMetadata() {
        return true;
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return RAW;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        if (!Arrays.equals(schema.fieldNames(), RAW.fieldNames())) {
            throw new UnsupportedOperationException("The double has one column, _rawBody; not " + schema.simpleString());
        }
        return new ItemsTable(Options.of(properties));
    }
}
