package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	rnd "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/pred"
)

// demo makes the files of stoa demo, with damaged copies.
func demo(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	stoaRun(t, "demo", dir, "--damage", "-q")
	return dir
}

// stoaRun runs a command line.
func stoaRun(t *testing.T, args ...string) {
	t.Helper()
	if status, err := verbs.Run(t.Context(), args, nil, io.Discard, io.Discard); status != 0 {
		t.Fatal(args, status, err)
	}
}

// started runs a server until the test ends, and returns its address, HOST:PORT.
func started(t *testing.T, change func(*verbs.FlightFlags), places ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &verbs.FlightFlags{Memory: "256MiB", Split: "64MiB"}
	if change != nil {
		change(f)
	}
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- run(ctx, f, places, func(address string) error {
			ready <- address
			return nil
		}, func(s string) { t.Errorf("it said: %s", s) })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case a := <-ready:
		_, rest, _ := strings.Cut(a, "://")
		return rest
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	return ""
}

// client connects to a server.
func client(t *testing.T, address string, options ...grpc.DialOption) *flightsql.Client {
	t.Helper()
	if options == nil {
		options = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	c, err := flightsql.NewClient(address, nil, nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// fetch returns the rows of all endpoints, as texts.
func fetch(ctx context.Context, c *flightsql.Client, info *flight.FlightInfo) (rows []string, sc *arrow.Schema,
	err error) {
	for _, e := range info.Endpoint {
		r, err := c.DoGet(ctx, e.Ticket)
		if err != nil {
			return rows, sc, err
		}
		sc = r.Schema()
		for r.Next() {
			rows = append(rows, lines(r.RecordBatch())...)
		}
		err = r.Err()
		r.Release()
		if err != nil && err != io.EOF {
			return rows, sc, err
		}
	}
	return rows, sc, nil
}

func lines(b arrow.RecordBatch) (out []string) {
	for i := range int(b.NumRows()) {
		var row []string
		for _, c := range b.Columns() {
			row = append(row, c.ValueStr(i))
		}
		out = append(out, strings.Join(row, "|"))
	}
	return out
}

func asked(t *testing.T, c *flightsql.Client, statement string) ([]string, error) {
	t.Helper()
	info, err := c.Execute(t.Context(), statement)
	if err != nil {
		return nil, err
	}
	rows, _, err := fetch(t.Context(), c, info)
	return rows, err
}

// scanned returns what the library reads.
func scanned(t *testing.T, uri string, columns []string, where string) (out []string) {
	t.Helper()
	table, err := stoa.Open(t.Context(), uri, stoa.OpenOptions{Formats: verbs.Formats()})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	spec := stoa.ScanSpec{Columns: columns}
	if where != "" {
		if spec.Filter, err = pred.Parse(where); err != nil {
			t.Fatal(err)
		}
	}
	for b, err := range table.Scan(t.Context(), spec) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, lines(b)...)
	}
	return out
}

// TestStatements: a statement returns what a scan with its columns and predicate returns; others are refused, with the
// code of their reason.
func TestStatements(t *testing.T) {
	dir := demo(t)
	c := client(t, started(t, nil, dir))
	kudu, red := dir+"/kudu#d_major", dir+"/flat.red"
	nulls := scanned(t, kudu, []string{"b"}, "id < 500 and b is null")
	few := scanned(t, kudu, []string{"id"}, "id < 100")
	many := scanned(t, kudu, nil, "id >= 1000")
	for statement, want := range map[string][]string{
		"select id, b from d_major":                                     scanned(t, kudu, []string{"id", "b"}, ""),
		"SELECT * FROM stoa.demo.d_major;":                              scanned(t, kudu, nil, ""),
		`select "b" from "demo"."d_major" where id < 500 and b is null`: nulls,
		`select * from "flat.red" where s like '%limit 3%'`:             scanned(t, red, nil, "s like '%limit 3%'"),
		"select id from D_MAJOR where (id < 100) limit 3":               few[:3],
		"select id from d_major limit 0":                                nil,
		"select count(*) from d_major where id >= 1000":                 {fmt.Sprint(len(many))},
		"select Count ( * ) from 'flat.red'":                            {fmt.Sprint(len(scanned(t, red, nil, "")))},
		"select id from d_major where id < 0":                           nil,
	} {
		got, err := asked(t, c, statement)
		if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: got %d rows %.200q, %v; want %d", statement, len(got), got, err, len(want))
		}
		p, err := c.Prepare(t.Context(), statement)
		if err != nil {
			t.Errorf("%s: %v", statement, err)
			continue
		}
		info, err := p.Execute(t.Context())
		if err != nil {
			t.Errorf("%s: %v", statement, err)
			continue
		}
		again, sc, err := fetch(t.Context(), c, info)
		if err != nil || strings.Join(again, "\n") != strings.Join(want, "\n") || !sc.Equal(p.DatasetSchema()) {
			t.Errorf("%s, prepared: got %d rows of %v, %v; want %d", statement, len(again), sc, err, len(want))
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for statement, want := range map[string]codes.Code{
		"select nope from d_major":                        codes.InvalidArgument,
		"select id from nope":                             codes.InvalidArgument,
		"select id from other.d_major":                    codes.InvalidArgument,
		"select id from x.demo.d_major":                   codes.InvalidArgument,
		"select id from d_major where id <> ":             codes.InvalidArgument,
		"select id from d_major where id < 'a' (":         codes.InvalidArgument,
		"select id from d_major limit x":                  codes.InvalidArgument,
		`select "id from d_major`:                         codes.InvalidArgument,
		"":                                                codes.Unimplemented,
		"drop table d_major":                              codes.Unimplemented,
		"select id, from d_major":                         codes.Unimplemented,
		"select 'id' from d_major":                        codes.Unimplemented,
		"select sum(id) from d_major":                     codes.Unimplemented,
		"select id + 1 from d_major":                      codes.Unimplemented,
		"select id as x from d_major":                     codes.Unimplemented,
		"select id from d_major order by id":              codes.Unimplemented,
		"select id from d_major where id < 3 group by id": codes.Unimplemented,
		"select id from d_major, other":                   codes.Unimplemented,
		"select id from (select 1)":                       codes.Unimplemented,
		`select * from "damaged/key.cfile"`:               codes.DataLoss,
	} {
		if _, err := asked(t, c, statement); status.Code(err) != want {
			t.Errorf("%q: got %v, want %v", statement, err, want)
		}
	}
}

// TestEndpoints: the endpoints of a large table are its splits: each can be read alone, by another connection; together
// they are the rows in order; a ticket that was changed, or is of another server, is refused.
func TestEndpoints(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "n.csv")
	var b strings.Builder
	b.WriteString("n,t\n")
	for i := range 40_000 {
		fmt.Fprintf(&b, "%d,%x\n", i, rnd.Uint64())
	}
	if err := os.WriteFile(text, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "p", "n.parquet")
	os.Mkdir(filepath.Dir(out), 0o777)
	stoaRun(t, "convert", "-q", text, "--source-opt", "header=true", "-o", out, "--opt", "row-group-rows=5000")
	address := started(t, func(f *verbs.FlightFlags) { f.Split = "50kB" }, filepath.Dir(out))
	c, other := client(t, address), client(t, started(t, nil, filepath.Dir(out)))
	info, err := c.Execute(t.Context(), `select * from "n.parquet"`)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Endpoint) < 4 || info.TotalRecords != 40_000 || !info.Ordered {
		t.Errorf("%d endpoints, %d rows, ordered: %t", len(info.Endpoint), info.TotalRecords, info.Ordered)
	}
	rows, _, err := fetch(t.Context(), client(t, address), info)
	if err != nil || len(rows) != 40_000 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, r := range rows {
		if n, _, _ := strings.Cut(r, "|"); n != fmt.Sprint(i) {
			t.Fatalf("row %d is %s", i, r)
		}
	}
	if _, _, err := fetch(t.Context(), other, info); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a ticket of another server: %v", err)
	}
	for k := range 40 {
		e := info.Endpoint[0].Ticket.Ticket
		bad := append([]byte{}, e...)
		bad[len(bad)/2+len(bad)/2*k/40] ^= 1 // what is before is the envelope, of which some bytes mean nothing
		part := []*flight.FlightEndpoint{{Ticket: &flight.Ticket{Ticket: bad}}}
		_, _, err := fetch(t.Context(), c, &flight.FlightInfo{Endpoint: part})
		if err == nil {
			t.Errorf("a ticket that was changed at byte %d was read", len(bad)/2+len(bad)/2*k/40)
		}
	}
}

// TestCancel: a statement that is cancelled ends with an error, also in the middle of a stream, and is not read again.
func TestCancel(t *testing.T) {
	dir := demo(t)
	c := client(t, started(t, nil, dir))
	info, err := c.Execute(t.Context(), "select * from d_major")
	if err != nil {
		t.Fatal(err)
	}
	result, err := c.CancelFlightInfo(t.Context(), &flight.CancelFlightInfoRequest{Info: info})
	if err != nil || result.Status != flight.CancelStatusCancelled {
		t.Fatal(result, err)
	}
	if rows, _, err := fetch(t.Context(), c, info); status.Code(err) != codes.Canceled {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if rows, err := asked(t, c, "select * from d_major"); err != nil || len(rows) != 1619 {
		t.Errorf("another execution: %d rows, %v", len(rows), err)
	}
	if _, err := c.CancelFlightInfo(t.Context(), &flight.CancelFlightInfoRequest{Info: &flight.FlightInfo{
		AppMetadata: []byte("0123456789abcdef{}")}}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("an id that is not of this server: %v", err)
	}
}

// TestCatalogue: catalogues, schemas, tables, keys, by patterns.
func TestCatalogue(t *testing.T) {
	dir := demo(t)
	c := client(t, started(t, nil, dir, filepath.Join(dir, "carbon")))
	ctx := t.Context()
	text := func(s string) *string { return &s }
	all := func(info *flight.FlightInfo, err error) []string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		rows, _, err := fetch(ctx, c, info)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	expect := func(what string, got []string, want ...string) {
		t.Helper()
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	expect("catalogues", all(c.GetCatalogs(ctx)), "stoa")
	expect("schemas", all(c.GetDBSchemas(ctx, &flightsql.GetDBSchemasOpts{})), "stoa|carbon", "stoa|demo")
	expect("types", all(c.GetTableTypes(ctx)), "TABLE")
	expect("tables", all(c.GetTables(ctx, &flightsql.GetTablesOpts{TableNameFilterPattern: text("%m\\_j%")})))
	expect("tables", all(c.GetTables(ctx, &flightsql.GetTablesOpts{TableNameFilterPattern: text("d\\_m%")})),
		"stoa|demo|d_major|TABLE")
	expect("tables", all(c.GetTables(ctx, &flightsql.GetTablesOpts{DbSchemaFilterPattern: text("carb__")})),
		"stoa|carbon|managed_del|TABLE")
	expect("views", all(c.GetTables(ctx, &flightsql.GetTablesOpts{TableTypes: []string{"VIEW"}})))
	expect("key", all(c.GetPrimaryKeys(ctx, flightsql.TableRef{Table: "d_major"})), "stoa|demo|d_major|id|1|(null)")
	expect("foreign keys", all(c.GetImportedKeys(ctx, flightsql.TableRef{Table: "d_major"})))
	if got := all(c.GetTables(ctx, &flightsql.GetTablesOpts{IncludeSchema: true})); len(got) < 7 {
		t.Errorf("tables with schemas: got %q", got)
	}
	if got := all(c.GetSqlInfo(ctx, nil)); len(got) < 10 {
		t.Errorf("info: got %q", got)
	}
}

// TestToken: without the token nothing is answered; it comes as a bearer token, or as a password.
func TestToken(t *testing.T) {
	const token = "0123456789abcdef"
	address := started(t, func(f *verbs.FlightFlags) { f.Token = token }, demo(t))
	c := client(t, address)
	as := func(header string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", header)
	}
	for _, header := range []string{"", "Bearer ", "Bearer 0123456789abcdeF", "Bearer", token, "Basic xyz"} {
		ctx := t.Context()
		if header != "" {
			ctx = as(header)
		}
		if _, err := c.GetCatalogs(ctx); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%q: %v", header, err)
		}
		if _, err := c.DoGet(ctx, &flight.Ticket{Ticket: []byte("x")}); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%q: a ticket: %v", header, err)
		}
	}
	if _, err := c.GetCatalogs(as("Bearer " + token)); err != nil {
		t.Error(err)
	}
	_, err := c.Client.AuthenticateBasicToken(t.Context(), "anybody", "wrong")
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("a wrong password: %v", err)
	}
	ctx, err := c.Client.AuthenticateBasicToken(t.Context(), "anybody", token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetCatalogs(ctx); err != nil {
		t.Error(err)
	}
}

// TestNamesOfTheServer: a request is answered only under a name of this machine, or of the server (DNS rebinding).
func TestNamesOfTheServer(t *testing.T) {
	dir := demo(t)
	local := started(t, nil, dir)
	open := started(t, func(f *verbs.FlightFlags) {
		f.Listen, f.Token, f.Names = "127.0.0.1", "0123456789abcdef", []string{"files.example"}
	}, dir)
	for name, want := range map[string][2]bool{"localhost": {true, true}, "127.0.0.1:9": {true, true},
		"[::1]:9": {true, true}, "192.168.7.7": {false, true}, "files.example:80": {false, true},
		"evil.example": {false, false}, "127.0.0.1.evil.example": {false, false}} {
		for i, address := range []string{local, open} {
			c := client(t, address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority(name))
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer 0123456789abcdef")
			_, err := c.GetCatalogs(ctx)
			if ok := status.Code(err) != codes.PermissionDenied; ok != want[i] || ok && err != nil {
				t.Errorf("%s, server %d: %v", name, i, err)
			}
		}
	}
}

// TestTLS: with a certificate everything is encrypted, and nothing is answered otherwise.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	write := func(name string, b []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	address := started(t, func(f *verbs.FlightFlags) {
		f.Cert = write("cert.pem", cert)
		f.Key = write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}))
	}, demo(t))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	c := client(t, address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool})))
	if rows, err := asked(t, c, "select count(*) from d_major"); err != nil || len(rows) != 1 || rows[0] != "1619" {
		t.Errorf("got %v, %v", rows, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := client(t, address).GetCatalogs(ctx); err == nil {
		t.Error("it was answered without encryption")
	}
}

// TestStatementsAtRandom: statements of random words, and random bytes as tickets, end with rows or an error of a known
// kind; never with a panic, and never with what is not served.
func TestStatementsAtRandom(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 1_500
	}
	outside := t.TempDir()
	secret := []byte("secret\nnobody-may-see-this\n")
	if err := os.WriteFile(filepath.Join(outside, "secret.csv"), secret, 0o666); err != nil {
		t.Fatal(err)
	}
	dir := demo(t)
	if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	c := client(t, started(t, nil, dir))
	r := rnd.New(rnd.NewPCG(3, 4))
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	seen := map[codes.Code]int{}
	for i := range n {
		var statement string
		switch r.IntN(4) {
		case 0:
			for range r.IntN(12) {
				statement += pick("select", "*", "from", "d_major", "where", "id", "<", "3", "limit", "(", ")", ",",
					"'", "\"", ".", "count", "and", "is null", "\x00", "é", ";", "flat.red", "in") +
					pick(" ", "", "\n")
			}
		case 1:
			statement = "select * from " + pick(`"../secret.csv"`, `"out/secret.csv"`, `'`+outside+`/secret.csv'`,
				`"/etc/passwd"`, `"@`+dir+`"`, `"s3://b/k"`, `"http://127.0.0.1:1/x"`, `"d_major#x"`, `""`)
		case 2:
			statement = "select " + pick("*", "id", "count(*)", "i", `"id"`, "a, b") + " from " +
				pick("d_major", `"flat.red"`, `"key.cfile"`, `"damaged/key.cfile"`, `"dremel.trv"`, "nope") +
				pick("", "", "", " where id < 5", " where value is null", " where "+strings.Repeat("(", 3000),
					" where i = 'x'") +
				pick("", "", " limit 2", " limit -1", " limit 99999999999999999999")
		default:
			b := make([]byte, r.IntN(60))
			for k := range b {
				b[k] = byte(r.Uint32())
			}
			_, err := c.DoGet(t.Context(), &flight.Ticket{Ticket: b})
			if code := status.Code(err); code == codes.OK || code == codes.Internal || code == codes.Unavailable {
				t.Fatalf("request %d, a ticket of %x: %v", i, b, err)
			}
			continue
		}
		rows, err := asked(t, c, strings.ToValidUTF8(statement, "?"))
		code := status.Code(err)
		seen[code]++
		if code == codes.Unknown || code == codes.Internal || code == codes.Unavailable {
			t.Fatalf("request %d, %q: %v", i, statement, err)
		}
		if text := strings.Join(rows, "\n"); strings.Contains(text, "nobody-may") || strings.Contains(text, "root:") {
			t.Fatalf("request %d, %q: got %s", i, statement, text)
		}
	}
	if seen[codes.OK] < n/50 || seen[codes.Unimplemented] < n/20 || seen[codes.InvalidArgument] < n/20 {
		t.Errorf("the answers are of one kind: %v", seen)
	}
	t.Logf("%d requests: %v", n, seen)
}
