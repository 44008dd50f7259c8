package peer;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.PrintStream;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.io.JsonEncoder;
import org.apache.trevni.avro.AvroColumnReader;

/** Reads FILEs with Avro's AvroColumnReader and prints "FILE <name>", then each row as Avro's JSON on a line, then "END <rows>" or "FAIL <reason>". */
public final class Rows {
  public static void main(String[] files) throws Exception {
    PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
    for (String name : files) {
      out.println("FILE " + name);
      try { rows(new File(name), out); } catch (Throwable t) { out.println("FAIL " + String.valueOf(t).replace('\n', ' ')); }
    }
    out.flush();
  }

  private static void rows(File f, PrintStream out) throws Exception {
    long n = 0;
    try (AvroColumnReader<Object> r = new AvroColumnReader<Object>(new AvroColumnReader.Params(f))) {
      Schema s = r.getFileSchema();
      GenericDatumWriter<Object> w = new GenericDatumWriter<Object>(s);
      for (Object row : r) {
        ByteArrayOutputStream b = new ByteArrayOutputStream();
        JsonEncoder e = EncoderFactory.get().jsonEncoder(s, b);
        w.write(row, e);
        e.flush();
        out.println("ROW " + b.toString("UTF-8").replace("\n", " "));
        n++;
      }
    }
    out.println("END " + n);
  }
}
