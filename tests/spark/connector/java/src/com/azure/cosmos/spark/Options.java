package com.azure.cosmos.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.SparkSession;
import scala.Tuple2;

/**
 * The options of one read or write, and those in Spark's configuration, checked as the connector checks them. Upper and lower
 * case are the same in names.
 */
final class Options implements Serializable {
    private static final String PREFIX = "spark.cosmos.";
    private static final String TARGET = PREFIX + "throughputControl.targetThroughput";
    private static final Map<String, JsonNode> DOCUMENTED = documented();

    private final TreeMap<String, String> given = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);

    private Options() {
    }

    /** Check names and values of all options, and that none is missing that every use needs. */
    static Options of(Map<String, String> properties) {
        Options options = new Options();
        for (Tuple2<String, String> setting : SparkSession.active().sparkContext().getConf().getAll()) {
            options.add(setting._1(), setting._2());
        }
        properties.forEach(options::add);
        options.require("auth.type", "MasterKey", "MasterKey");
        for (String name : List.of("accountEndpoint", "accountKey", "database", "container")) {
            options.get(name);
        }
        if (options.given.getOrDefault(PREFIX + "throughputControl.enabled", "false").equals("true")) {
            options.get("throughputControl.name");
            options.require("throughputControl.globalControl.useDedicatedContainer", "false", "true");
            options.given.put(TARGET, Integer.toString(Integer.parseInt(options.get(TARGET)) / executors()));
        }
        return options;
    }

    private void add(String name, String value) {
        if (name.regionMatches(true, 0, PREFIX, 0, PREFIX.length())) {
            check(name, value);
            given.put(name, value);
        }
    }

    /** The value of an option that has to be there. */
    String get(String name) {
        String full = name.startsWith(PREFIX) ? name : PREFIX + name;
        String value = given.get(full);
        if (value == null) {
            throw new IllegalArgumentException("The option " + full + " is missing.");
        }
        return value;
    }

    /** Refuse every value, or default, that the double does not know. */
    void require(String name, String value, String byDefault) {
        String found = given.getOrDefault(PREFIX + name, byDefault);
        if (!found.equals(value)) {
            throw new UnsupportedOperationException("The double has " + PREFIX + name + "=" + value + " only; not " + found);
        }
    }

    /** All of them by their whole names; the target of a rate is the part of one executor. */
    Map<String, String> all() {
        return given;
    }

    private static void check(String name, String value) {
        JsonNode kind = DOCUMENTED.get(name);
        if (kind == null) {
            throw new IllegalArgumentException("There is no option " + name + ".");
        }
        boolean legal = switch (kind.asText()) {
            case "boolean" -> value.matches("(?i)true|false");
            case "integer" -> value.matches("-?\\d{1,9}");
            case "text" -> true;
            default -> {
                boolean found = false;
                for (JsonNode one : kind) {
                    found |= one.asText().equalsIgnoreCase(value);
                }
                yield found;
            }
        };
        if (!legal) {
            throw new IllegalArgumentException("The option " + name + " cannot be " + value + ".");
        }
    }

    /** As the connector counts them: all but the driver, and at least one. */
    private static int executors() {
        return Math.max(1, SparkSession.active().sparkContext().statusTracker().getExecutorInfos().length - 1);
    }

    private static Map<String, JsonNode> documented() {
        Map<String, JsonNode> found = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        try (InputStream list = Options.class.getResourceAsStream("/documented_options.json")) {
            new ObjectMapper().readTree(list).get("options").fields()
                .forEachRemaining(option -> found.put(option.getKey(), option.getValue()));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return found;
    }
}
