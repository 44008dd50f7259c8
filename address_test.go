package stoa_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"testing"

	"stoa"
	"stoa/pred"
	"stoa/store/remote/remotetest"
	_ "stoa/store/s3"
)

// TestAddressesInGo: the package itself reads from and writes to addresses: a table is converted to one object and to a
// directory of them, opened, scanned, counted, listed, verified, compared, split, and read row by row.
func TestAddressesInGo(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/bucket", 0o777); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&remotetest.S3{Dir: dir})
	defer server.Close()
	for k, v := range map[string]string{"AWS_ENDPOINT_URL_S3": server.URL, "AWS_ACCESS_KEY_ID": "key",
		"AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1", "AWS_PROFILE": "",
		"AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(k, v)
	}
	ctx := t.Context()
	open := func(uri string) *stoa.Table {
		t.Helper()
		x, err := stoa.Open(ctx, uri, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { x.Close() })
		return x
	}
	local := open("corpus/kudu/1.18.1/key_int32/k.ck.cfile")
	for uri, format := range map[string]string{"s3://bucket/a/key.parquet": "", "s3://bucket/set/": "cfile"} {
		if _, err := stoa.Convert(ctx, local, stoa.ScanSpec{}, uri, stoa.CreateOptions{To: format}); err != nil {
			t.Fatal(uri, err)
		}
		far := open(uri)
		d, err := stoa.Diff(ctx, local, far, stoa.DiffOptions{})
		if err != nil || d.Same != 400 || d.Rows != [2]int64{400, 400} || d.Changed > 0 {
			t.Errorf("%s: %+v, %v", uri, d, err)
		}
		for f, err := range stoa.Verify(ctx, uri, stoa.OpenOptions{}) {
			if err != nil || f.Severity.String() == "error" {
				t.Error(uri, f, err)
			}
		}
		if n := listed(ctx, t, uri); n != 1 {
			t.Errorf("%s: %d tables are listed", uri, n)
		}
		where, err := pred.Parse("value > 0")
		if err != nil {
			t.Fatal(err)
		}
		spec := stoa.ScanSpec{Filter: where}
		if got, want := values(ctx, t, far, spec), values(ctx, t, local, spec); got != want || want == "[]" {
			t.Errorf("%s: got %.100s, want %.100s", uri, got, want)
		}
	}
}

func listed(ctx context.Context, t *testing.T, uri string) (n int) {
	t.Helper()
	for e, err := range stoa.List(ctx, uri, stoa.OpenOptions{}) {
		if err != nil {
			t.Error(e, err)
		}
		n++
	}
	return n
}

// values are those of the only column, in order.
func values(ctx context.Context, t *testing.T, x *stoa.Table, spec stoa.ScanSpec) string {
	t.Helper()
	all := []int32{}
	for row, err := range stoa.RowsOf[struct {
		Value int32 `arrow:"value"`
	}](ctx, x, spec) {
		if err != nil {
			t.Error(err)
			break
		}
		all = append(all, row.Value)
	}
	return fmt.Sprint(all)
}
