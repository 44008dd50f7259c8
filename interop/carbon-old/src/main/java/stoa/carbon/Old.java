package stoa.carbon;

import java.io.BufferedReader;
import java.io.File;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.carbondata.core.cache.*;
import org.apache.carbondata.core.cache.dictionary.*;
import org.apache.carbondata.core.constants.CarbonCommonConstants;
import org.apache.carbondata.core.datastore.FileReader;
import org.apache.carbondata.core.datastore.block.*;
import org.apache.carbondata.core.datastore.chunk.DimensionColumnPage;
import org.apache.carbondata.core.datastore.chunk.impl.*;
import org.apache.carbondata.core.datastore.chunk.reader.*;
import org.apache.carbondata.core.datastore.impl.FileFactory;
import org.apache.carbondata.core.datastore.page.ColumnPage;
import org.apache.carbondata.core.keygenerator.directdictionary.*;
import org.apache.carbondata.core.metadata.*;
import org.apache.carbondata.core.metadata.blocklet.*;
import org.apache.carbondata.core.metadata.datatype.DataTypes;
import org.apache.carbondata.core.metadata.encoder.Encoding;
import org.apache.carbondata.core.metadata.schema.table.column.ColumnSchema;
import org.apache.carbondata.core.util.*;

/**
 * Reads data files by the column chunk readers of CarbonData 1.6.1, the last release that has those of formats 1 and 2, and global
 * dictionaries by its dictionary cache. Usage: Old LIST, with lines FILE, format (V1, V2, V3), table directory or -, rows of a blocklet
 * (carbon.blocklet.size), OUT, with tabs between. The rows go to OUT as JSON lines of texts, or the reason to OUT.err.
 */
public class Old {
  private final String file;
  private final String table;
  private final ColumnarFormatVersion version;
  private final FileReader in = FileFactory.getFileHolder(FileFactory.FileType.LOCAL);
  private final Map<String, Dictionary> dictionaries = new HashMap<>();
  private DimensionColumnChunkReader dimensions;
  private List<ColumnSchema> columns;

  private Old(String file, String version, String table) {
    this.file = file;
    this.table = table;
    this.version = ColumnarFormatVersion.valueOf(version);
  }

  public static void main(String[] args) throws Exception {
    try (BufferedReader list = Files.newBufferedReader(Paths.get(args[0]))) {
      for (String line; (line = list.readLine()) != null; ) {
        String[] f = line.split("\t");
        CarbonProperties.getInstance().addProperty(CarbonCommonConstants.BLOCKLET_SIZE, f[3]);
        try (PrintWriter out = new PrintWriter(f[4], "UTF-8")) {
          new Old(f[0], f[1], f[2]).read(out);
        } catch (Throwable e) {
          try (PrintWriter why = new PrintWriter(f[4] + ".err", "UTF-8")) {
            e.printStackTrace(why);
          }
        }
      }
    }
  }

  private void read(PrintWriter out) throws Exception {
    long size = new File(file).length();
    long at = in.readLong(file, size - 8);
    TableBlockInfo block = new TableBlockInfo(file, at, "0", new String[0], size, version, new String[0]);
    DataFileFooter foot = CarbonUtil.readMetadataFile(block);
    columns = foot.getColumnInTable();
    int[] widths = new SegmentProperties(columns, foot.getSegmentInfo().getColumnCardinality()).getDimensionColumnsValueSize();
    for (BlockletInfo b : foot.getBlockletList()) {
      dimensions = CarbonDataReaderFactory.getInstance().getDimensionColumnChunkReader(version, b, widths, file, false);
      blocklet(b, out);
    }
  }

  /** A column of a blocklet: the text of each row; null is null. */
  private void blocklet(BlockletInfo b, PrintWriter out) throws Exception {
    MeasureColumnChunkReader measures = CarbonDataReaderFactory.getInstance().getMeasureColumnChunkReader(version, b, file, false);
    Map<String, List<String>> rows = new LinkedHashMap<>();
    int dimension = 0, measure = 0, n = 0;
    for (int i = 0; i < columns.size(); ) {
      ColumnSchema c = columns.get(i);
      List<String> v = new ArrayList<>();
      if (!c.isDimensionColumn()) {
        measure(measures.readRawMeasureChunk(in, measure++), c, v);
        i++;
      } else if (c.getNumberOfChild() > 0) {
        List<DimensionColumnPage> pages = new ArrayList<>();
        int end = i + 1;
        for (int left = c.getNumberOfChild(); left > 0; left--) left += columns.get(end++).getNumberOfChild();
        for (int k = i; k < end; k++) pages.add(dimensions.readRawDimensionChunk(in, dimension++).decodeColumnPage(0));
        for (int r = 0; r < b.getNumberOfRows(); r++) v.add(nested(i, i, pages, r));
        i = end;
      } else {
        dimension(dimensions.readRawDimensionChunk(in, dimension++), c, v);
        i++;
      }
      rows.put(c.getColumnName(), v);
      n = v.size();
    }
    for (int r = 0; r < n; r++) {
      StringBuilder s = new StringBuilder("{");
      for (Map.Entry<String, List<String>> e : rows.entrySet()) {
        s.append(s.length() > 1 ? "," : "").append(quoted(e.getKey())).append(':').append(e.getValue().get(r) == null ? "null" : quoted(e.getValue().get(r)));
      }
      out.println(s.append('}'));
    }
  }

  private static String quoted(String s) {
    StringBuilder b = new StringBuilder("\"");
    for (char c : s.toCharArray()) {
      if (c == '"' || c == '\\') b.append('\\').append(c);
      else if (c < ' ') b.append(String.format("\\u%04x", (int) c));
      else b.append(c);
    }
    return b.append('"').toString();
  }

  private void measure(MeasureRawColumnChunk raw, ColumnSchema c, List<String> v) {
    for (int k = 0; k < raw.getPagesCount(); k++) {
      ColumnPage p = raw.decodeColumnPage(k);
      for (int r = 0; r < raw.getRowCount()[k]; r++) {
        String t = c.getDataType().getName();
        if (p.getNullBits().get(r)) v.add(null);
        else if (t.equals("DECIMAL")) v.add(p.getDecimal(r).toPlainString());
        else if (t.equals("DOUBLE")) v.add(Double.toString(p.getDouble(r)));
        else v.add(Long.toString(p.getLong(r)));
      }
    }
  }

  private void dimension(DimensionRawColumnChunk raw, ColumnSchema c, List<String> v) throws Exception {
    for (int k = 0; k < raw.getPagesCount(); k++) {
      DimensionColumnPage p = raw.decodeColumnPage(k);
      for (int r = 0; r < raw.getRowCount()[k]; r++) v.add(value(c, p.getChunkData(r)));
    }
  }

  /** What a list or struct of formats 1 and 2 is: its parts between brackets. */
  private String nested(int top, int i, List<DimensionColumnPage> pages, int row) throws Exception {
    ColumnSchema c = columns.get(i);
    byte[] b = pages.get(i - top).getChunkData(row);
    if (c.getNumberOfChild() == 0) return value(c, b);
    ByteBuffer two = ByteBuffer.wrap(b);
    int n = two.getInt(), first = two.getInt();
    StringBuilder s = new StringBuilder("[");
    int kid = i + 1;
    for (int k = 0; k < n; k++) {
      boolean list = c.getDataType().getName().equals("ARRAY");
      s.append(k > 0 ? "," : "").append(nested(top, kid, pages, list ? first + k : first));
      if (!list) for (int left = 1; left > 0; left--) left += columns.get(kid++).getNumberOfChild();
    }
    return s.append(']').toString();
  }

  private String value(ColumnSchema c, byte[] b) throws Exception {
    if (!c.hasEncoding(Encoding.DICTIONARY)) {
      String s = new String(b, StandardCharsets.UTF_8);
      return s.equals(CarbonCommonConstants.MEMBER_DEFAULT_VAL) ? null : s;
    }
    int code = 0;
    for (byte x : b) code = code << 8 | (x & 0xff);
    if (c.hasEncoding(Encoding.DIRECT_DICTIONARY)) {
      Object o = DirectDictionaryKeyGeneratorFactory.getDirectDictionaryGenerator(c.getDataType()).getValueFromSurrogate(code);
      return o == null ? null : o.toString();
    }
    String s = dictionary(c).getDictionaryValueForKey(code);
    if (s == null) throw new IllegalStateException(c.getColumnName() + ": code " + code + " has no value");
    return s.equals(CarbonCommonConstants.MEMBER_DEFAULT_VAL) ? null : s;
  }

  /** The dictionary of a column, whose sort index must lead from each value to its code. */
  private Dictionary dictionary(ColumnSchema c) throws Exception {
    Dictionary d = dictionaries.get(c.getColumnUniqueId());
    if (d != null) return d;
    AbsoluteTableIdentifier id = AbsoluteTableIdentifier.from(table, "d", "t" + table.hashCode());
    Cache<DictionaryColumnUniqueIdentifier, Dictionary> cache = CacheProvider.getInstance().createCache(CacheType.FORWARD_DICTIONARY);
    d = cache.get(new DictionaryColumnUniqueIdentifier(id, new ColumnIdentifier(c.getColumnUniqueId(), null, c.getDataType()), c.getDataType()));
    for (int code = 1; d.getDictionaryValueForKey(code) != null; code++) {
      String v = d.getDictionaryValueForKey(code);
      int back = d.getSurrogateKey(v);
      boolean number = c.getDataType() != DataTypes.STRING;
      if (back != code && !(number && v.equals(CarbonCommonConstants.MEMBER_DEFAULT_VAL))) {
        throw new IllegalStateException(c.getColumnName() + ": the sort index leads from " + v + " to code " + back + ", not " + code);
      }
    }
    dictionaries.put(c.getColumnUniqueId(), d);
    return d;
  }
}
