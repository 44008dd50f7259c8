import java.sql.*;
import java.util.*;

/** What a BI tool does with the JDBC driver of Arrow: metadata, statements, prepared statements, cancelling, errors. */
public class Judge {
    static int checks;

    static void expect(String what, Object got, Object want) {
        checks++;
        if (!String.valueOf(got).equals(String.valueOf(want))) {
            System.err.println("JDBC " + what + ": expected " + want + ", found " + got);
            System.exit(1);
        }
    }

    static List<String> all(ResultSet r, String... columns) throws SQLException {
        List<String> out = new ArrayList<>();
        while (r.next()) {
            StringBuilder b = new StringBuilder();
            for (String c : columns) b.append(b.length() > 0 ? "|" : "").append(r.getString(c));
            out.add(b.toString());
        }
        r.close();
        return out;
    }

    interface Work { void run() throws SQLException; }

    static void fails(String what, String with, Work work) {
        checks++;
        try {
            work.run();
        } catch (SQLException e) {
            if (e.toString().contains(with)) return;
            System.err.println("JDBC " + what + ": expected an error with " + with + ", found " + e);
            System.exit(1);
        }
        System.err.println("JDBC " + what + ": expected an error with " + with + ", found none");
        System.exit(1);
    }

    // arguments: URL, user, password, number of rows of d_major, sum of its ids
    public static void main(String[] a) throws Exception {
        Properties p = new Properties();
        p.put("user", a[1]);
        p.put("password", a[2]);
        Properties wrong = new Properties();
        wrong.put("user", a[1]);
        wrong.put("password", "not the password");
        fails("a wrong password", "password", () -> DriverManager.getConnection(a[0], wrong));
        try (Connection c = DriverManager.getConnection(a[0], p)) {
            DatabaseMetaData m = c.getMetaData();
            expect("name", m.getDatabaseProductName(), "stoa");
            expect("read-only", m.isReadOnly(), true);
            expect("catalogues", all(m.getCatalogs(), "TABLE_CAT"), "[stoa]");
            expect("schemas", all(m.getSchemas(), "TABLE_SCHEM"), "[data]");
            expect("types", all(m.getTableTypes(), "TABLE_TYPE"), "[TABLE]");
            expect("tables", all(m.getTables(null, "data", "d\\_%", null), "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE"), "[data|d_major|TABLE]");
            expect("columns", all(m.getColumns(null, "data", "d_major", "%"), "COLUMN_NAME"), "[id, a, b, c, d, e, f, g, h, v, dt, ts]");
            expect("keys", all(m.getPrimaryKeys(null, "data", "d_major"), "COLUMN_NAME"), "[id]");
            try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("select * from data.d_major")) {
                long n = 0, sum = 0;
                expect("columns", r.getMetaData().getColumnCount(), 12);
                while (r.next()) {
                    n++;
                    sum += r.getLong("id");
                    for (int i = 1; i <= 12; i++) r.getString(i); // getObject of a time with a zone: "not implemented", says the driver
                }
                expect("rows", n, a[3]);
                expect("sum of ids", sum, a[4]);
            }
            try (PreparedStatement s = c.prepareStatement("select count(*) from d_major where id >= 0"); ResultSet r = s.executeQuery()) {
                r.next();
                expect("count", r.getLong(1), a[3]);
            }
            try (PreparedStatement s = c.prepareStatement("select count(*) from d_major where id < ?")) {
                expect("parameters", s.getParameterMetaData().getParameterCount(), 1);
            }
            try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("select count(*) as n, sum(x.id) as s from d_major x join data.d_major y on x.id = y.id")) {
                r.next();
                expect("a join", r.getString("n") + " " + r.getString("s"), a[3] + " " + a[4]);
            }
            try (Statement s = c.createStatement()) {
                fails("a column that is not there", "no column nope", () -> s.executeQuery("select nope from d_major"));
                fails("writing", "select", () -> s.executeUpdate("delete from d_major"));
                fails("damage", "checksum", () -> {
                    ResultSet r = s.executeQuery("select * from \"damaged/key.cfile\"");
                    while (r.next()) r.getObject(1);
                });
            }
        }
        System.out.println("JDBC: " + checks + " checks");
    }
}
