package stoa.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The catalog behind stoa.Catalog. It changes nothing. */
public class PlaceCatalog implements TableCatalog, SupportsNamespaces, FunctionCatalog {
  private String name;
  private String root; // null: names are places
  private Map<String, String> options;
  private Map<List<String>, String> places = Collections.emptyMap();

  @Override public void initialize(String name, CaseInsensitiveStringMap given) {
    this.name = name;
    options = new TreeMap<>(given.asCaseSensitiveMap());
    root = given.get("root");
    options.keySet().removeIf(k -> k.equalsIgnoreCase("root"));
  }

  @Override public String name() {
    return name;
  }

  /** Lists the tables of the root, by namespace and name. */
  private synchronized Map<List<String>, String> list() {
    Map<List<String>, String> out = new LinkedHashMap<>();
    if (root != null) {
      Options o = new Options(options);
      List<String> args = o.verb("ls");
      args.addAll(Arrays.asList("--format=json", "--", root));
      Command.Answer a = Command.find(o.get("command", null)).run(args);
      if (a.status != 0 && a.status != 3) { // 3: some cannot be read; the others can
        throw new StoaException(a.status, a.errors);
      }
      try {
        for (JsonNode n : new ObjectMapper().readTree(a.text())) {
          if (n.hasNonNull("format") && n.hasNonNull("columns") && !n.hasNonNull("problem")) {
            out.put(parts(n.path("name").asText(), n.path("format").asText()), n.path("name").asText());
          }
        }
      } catch (IOException e) {
        throw new StoaException(a.status, "the tables of " + root + ": " + e.getMessage(), e);
      }
    }
    places = out;
    return out;
  }

  /** Directories below the root, the database of a CarbonData store, and the name: what stands in its place. */
  private List<String> parts(String place, String format) {
    String rest = place.startsWith(root) ? place.substring(root.length()) : place;
    int mark = rest.indexOf('#');
    List<String> out = new ArrayList<>();
    for (String dir : (mark < 0 ? rest : rest.substring(0, mark)).split("/")) {
      if (!dir.isEmpty() && !dir.equals(".")) {
        out.add(dir);
      }
    }
    if (mark >= 0) {
      String table = rest.substring(mark + 1);
      int dot = format.equals("carbon") ? table.indexOf('.') : -1;
      if (dot > 0) {
        out.add(table.substring(0, dot));
      }
      out.add(table.substring(dot + 1));
    }
    return out.isEmpty() ? Collections.singletonList(rest) : out;
  }

  private static List<String> key(Identifier id) {
    List<String> out = new ArrayList<>(Arrays.asList(id.namespace()));
    out.add(id.name());
    return out;
  }

  @Override public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    List<Identifier> out = new ArrayList<>();
    for (List<String> k : list().keySet()) {
      List<String> in = k.subList(0, k.size() - 1);
      if (in.equals(Arrays.asList(namespace))) {
        out.add(Identifier.of(namespace, k.get(k.size() - 1)));
      }
    }
    if (out.isEmpty() && namespace.length > 0 && !namespaceExists(namespace)) {
      throw new NoSuchNamespaceException(namespace);
    }
    return out.toArray(new Identifier[0]);
  }

  @Override public Table loadTable(Identifier id) throws NoSuchTableException {
    return load(id, null);
  }

  /** {@code version as of}: what --at takes, such as a hybrid time of Kudu. */
  @Override public Table loadTable(Identifier id, String version) throws NoSuchTableException {
    return load(id, version);
  }

  /** {@code timestamp as of}, in microseconds. */
  @Override public Table loadTable(Identifier id, long micros) throws NoSuchTableException {
    return load(id, Instant.EPOCH.plus(micros, ChronoUnit.MICROS).toString());
  }

  private Table load(Identifier id, String at) throws NoSuchTableException {
    String place = id.name();
    if (root != null) {
      place = places.get(key(id));
      if (place == null) {
        place = list().get(key(id));
      }
    }
    if (place == null || root == null && id.namespace().length > 0) {
      throw new NoSuchTableException(id);
    }
    Map<String, String> o = new HashMap<>(options);
    o.put("path", place);
    if (at != null) {
      o.put("at", at);
    }
    return StoaTable.open(new Options(o));
  }

  @Override public synchronized void invalidateTable(Identifier id) {
    places = Collections.emptyMap();
  }

  @Override public String[][] listNamespaces() {
    return below(new String[0]);
  }

  @Override public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    String[][] out = below(namespace);
    if (out.length == 0 && namespace.length > 0 && !namespaceExists(namespace)) {
      throw new NoSuchNamespaceException(namespace);
    }
    return out;
  }

  private String[][] below(String[] namespace) {
    Map<String, String[]> out = new TreeMap<>();
    int n = namespace.length;
    for (List<String> k : list().keySet()) {
      if (k.size() > n + 1 && k.subList(0, n).equals(Arrays.asList(namespace))) {
        out.put(k.get(n), k.subList(0, n + 1).toArray(new String[0]));
      }
    }
    return out.values().toArray(new String[0][]);
  }

  @Override public boolean namespaceExists(String[] namespace) {
    int n = namespace.length;
    for (List<String> k : list().keySet()) {
      if (k.size() > n && k.subList(0, n).equals(Arrays.asList(namespace))) {
        return true;
      }
    }
    return n == 0;
  }

  @Override public Map<String, String> loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    if (!namespaceExists(namespace)) {
      throw new NoSuchNamespaceException(namespace);
    }
    return Collections.emptyMap();
  }

  /** None: those by which tables are in buckets have names that nobody writes. */
  @Override public Identifier[] listFunctions(String[] namespace) {
    return new Identifier[0];
  }

  @Override public UnboundFunction loadFunction(Identifier id) throws NoSuchFunctionException {
    UnboundFunction f = id.namespace().length == 0 ? Buckets.named(id.name()) : null;
    if (f == null) {
      throw new NoSuchFunctionException(id);
    }
    return f;
  }

  private UnsupportedOperationException readOnly() {
    return new UnsupportedOperationException("catalog " + name + " reads tables; it changes none");
  }

  // In Spark 4 these two are no longer abstract, and deprecated.
  @SuppressWarnings("deprecation")
  @Override public Table createTable(Identifier id, StructType schema, Transform[] by, Map<String, String> properties) {
    throw readOnly();
  }

  @Override public Table alterTable(Identifier id, TableChange... changes) {
    throw readOnly();
  }

  @Override public boolean dropTable(Identifier id) {
    throw readOnly();
  }

  @Override public void renameTable(Identifier from, Identifier to) {
    throw readOnly();
  }

  @Override public void createNamespace(String[] namespace, Map<String, String> metadata) {
    throw readOnly();
  }

  @Override public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    throw readOnly();
  }

  @Override public boolean dropNamespace(String[] namespace, boolean cascade) {
    throw readOnly();
  }
}
