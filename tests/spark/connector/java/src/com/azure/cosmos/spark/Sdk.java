package com.azure.cosmos.spark;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * Loads the Java SDK with its own Jackson and Netty, which are newer than Spark's. The connector has them under other names.
 *
 * <p>Both sides share the classes of Java, and {@link Documents}.
 */
final class Sdk extends URLClassLoader {
    private static final Function<Map<String, String>, Documents> ACCOUNTS = accounts();

    private Sdk(URL[] jars) {
        super(jars, ClassLoader.getPlatformClassLoader());
    }

    static Documents open(Map<String, String> options) {
        return ACCOUNTS.apply(options);
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        return name.equals(Documents.class.getName()) ? Documents.class : super.findClass(name);
    }

    @SuppressWarnings("unchecked")
    private static Function<Map<String, String>, Documents> accounts() {
        try {
            Class<?> found = new Sdk(jars()).loadClass("connectordouble.Accounts");
            return (Function<Map<String, String>, Documents>) found.getConstructor().newInstance();
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The double's own jar, and those of the SDK, as Maven listed them when the double was built. */
    private static URL[] jars() {
        List<URL> found = new ArrayList<>(List.of(Sdk.class.getProtectionDomain().getCodeSource().getLocation()));
        try (InputStream list = Sdk.class.getResourceAsStream("/sdk.txt")) {
            for (String path : new String(list.readAllBytes(), StandardCharsets.UTF_8).lines().toList()) {
                found.add(Path.of(path).toUri().toURL());
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return found.toArray(URL[]::new);
    }
}
