// Command golang uses a Flight SQL server as a program in Go does: by arrow-go's client and its driver of database/sql.
//
//	golang ADDRESS TOKEN ROWS SUM [FILE of the certificate's authority]
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/driver"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

var checks int

// bigRows is how many rows big.parquet has: n is 0, 1, 2 and so on.
const bigRows = 2_000_000

func expect(what string, got, want any) {
	checks++
	if fmt.Sprint(got) != fmt.Sprint(want) {
		panic(fmt.Sprintf("%s: expected %v, found %v", what, want, got))
	}
}

func fails(what string, err error, word string) {
	checks++
	if err == nil || !strings.Contains(err.Error(), word) {
		panic(fmt.Sprintf("%s: expected an error with %q, found %v", what, word, err))
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func main() {
	address, token, rows := os.Args[1], os.Args[2], must(strconv.ParseInt(os.Args[3], 10, 64))
	sum := must(strconv.ParseInt(os.Args[4], 10, 64))
	_, address, _ = strings.Cut(address, "://")
	var secure *tls.Config
	if len(os.Args) > 5 {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(must(os.ReadFile(os.Args[5]))) {
			panic("no certificate in " + os.Args[5])
		}
		secure = &tls.Config{RootCAs: roots}
	}
	database(address, token, secure, rows, sum)
	client(address, token, secure)
	fmt.Printf("Go: %d checks\n", checks)
}

// open opens the server as a database of Go.
func open(address, token string, secure *tls.Config) *sql.DB {
	c := driver.DriverConfig{Address: address, Token: token}
	if secure != nil {
		c.TLSEnabled, c.TLSConfig = true, secure
	}
	return must(sql.Open("flightsql", c.DSN()))
}

// database asks by database/sql.
func database(address, token string, secure *tls.Config, rows, sum int64) {
	wrong := open(address, "0123456789", secure)
	defer wrong.Close()
	fails("a wrong token", wrong.QueryRow("select count(*) from d_major").Scan(new(int64)), "")
	db := open(address, token, secure)
	defer db.Close()
	var n, total int64
	if err := db.QueryRow("select count(*) from data.d_major").Scan(&n); err != nil {
		panic(err)
	}
	expect("count", n, rows)
	r := must(db.Query("select id from data.d_major"))
	for n = 0; r.Next(); n++ {
		var id int64
		if err := r.Scan(&id); err != nil {
			panic(err)
		}
		total += id
	}
	expect("the end of the rows", r.Err(), nil)
	expect("rows and sum", []int64{n, total}, []int64{rows, sum})
	for _, from := range []int64{0, 99_999, 1_999_998} {
		prepared, got := must(db.Prepare(`select n from "big.parquet" where n >= ? and n < ?`)), []int64{}
		r := must(prepared.Query(from, from+2))
		for r.Next() {
			if err := r.Scan(&n); err != nil {
				panic(err)
			}
			got = append(got, n)
		}
		expect("parameters", got, []int64{from, from + 1})
		prepared.Close()
	}
	fails("a column that is not there", db.QueryRow("select nope from d_major").Scan(&n), "no column nope")
	fails("damage", db.QueryRow(`select * from "damaged/key.cfile" where value = 0`).Scan(&n), "checksum")
}

// client asks by the client itself: metadata, partitions, and a statement that is cancelled.
func client(address, token string, secure *tls.Config) {
	how := grpc.WithTransportCredentials(insecure.NewCredentials())
	if secure != nil {
		how = grpc.WithTransportCredentials(credentials.NewTLS(secure))
	}
	c := must(flightsql.NewClient(address, nil, nil, how))
	defer c.Close()
	_, err := c.GetCatalogs(context.Background())
	fails("no token", err, "Unauthenticated")
	ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+token)
	expect("catalogues", texts(ctx, c, must(c.GetCatalogs(ctx)), "catalog_name"), []string{"stoa"})
	schemas := texts(ctx, c, must(c.GetDBSchemas(ctx, &flightsql.GetDBSchemasOpts{})), "db_schema_name")
	expect("schemas", slices.Contains(schemas, "data"), true)
	name := "d_major"
	tables := must(c.GetTables(ctx, &flightsql.GetTablesOpts{TableNameFilterPattern: &name, IncludeSchema: true}))
	expect("tables", texts(ctx, c, tables, "table_name"), []string{name})
	described := texts(ctx, c, tables, "table_schema")
	columns := []string{}
	for _, f := range must(flight.DeserializeSchema([]byte(described[0]), nil)).Fields() {
		columns = append(columns, f.Name)
	}
	expect("columns", columns, strings.Fields("id a b c d e f g h v dt ts"))
	partitions(ctx, c)
}

// partitions reads a statement by its partitions, in order, and cancels another reading.
func partitions(ctx context.Context, c *flightsql.Client) {
	info := must(c.Execute(ctx, `select * from "big.parquet"`))
	checks++
	if len(info.Endpoint) < 4 {
		panic(fmt.Sprintf("only %d partitions", len(info.Endpoint)))
	}
	var next int64
	for _, e := range info.Endpoint {
		r := must(c.DoGet(ctx, e.Ticket))
		for r.Next() {
			for _, n := range r.RecordBatch().Column(0).(*array.Int64).Int64Values() {
				if n != next {
					panic(fmt.Sprintf("row %d has %d", next, n))
				}
				next++
			}
		}
		expect("the end of a partition", r.Err(), nil)
		r.Release()
	}
	expect("rows of the partitions", next, bigRows)

	stopped, stop := context.WithCancel(ctx) // a small partition may be here whole by then; the next one is not
	var err error
	for _, e := range info.Endpoint {
		var r *flight.Reader
		if r, err = c.DoGet(stopped, e.Ticket); err != nil {
			break
		}
		for r.Next() {
			stop()
		}
		err = r.Err()
		r.Release()
		if err != nil {
			break
		}
	}
	stop()
	fails("cancelled", err, "ancel")
	expect("after that", len(must(c.Execute(ctx, "select id from d_major")).Endpoint) > 0, true)
}

// texts are the cells of a column of all that an answer leads to.
func texts(ctx context.Context, c *flightsql.Client, info *flight.FlightInfo, column string) (all []string) {
	for _, e := range info.Endpoint {
		r := must(c.DoGet(ctx, e.Ticket))
		for r.Next() {
			b := r.RecordBatch()
			switch col := b.Column(b.Schema().FieldIndices(column)[0]).(type) {
			case *array.String:
				for i := range col.Len() {
					all = append(all, col.Value(i))
				}
			case *array.Binary:
				for i := range col.Len() {
					all = append(all, string(col.Value(i)))
				}
			}
		}
		expect("the end of "+column, r.Err(), nil)
		r.Release()
	}
	return all
}
