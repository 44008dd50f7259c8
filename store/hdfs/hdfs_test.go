package hdfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/store/remote"
)

const site = `<?xml version="1.0"?>
<configuration>
<property><name>fs.defaultFS</name><value>hdfs://dead</value></property>
<property><name>domain</name><value>example.org</value></property>
<property><name>dfs.ha.namenodes.dead</name><value>a, b</value></property>
<property><name>dfs.namenode.rpc-address.dead.a</name><value>one.${domain}:9000</value></property>
<property><name>dfs.namenode.rpc-address.dead.b</name><value>${env.SECOND}</value></property>
<property><name>dfs.ha.namenodes.other</name><value>c</value></property>
<property><name>dfs.namenode.rpc-address.other.c</name><value>third:1</value></property>
<property><name>dfs.ha.namenodes.half</name><value>a</value></property>
%s</configuration>`

// configured sets Hadoop's configuration to site with more properties.
func configured(t *testing.T, more string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "core-site.xml"), fmt.Appendf(nil, site, more), 0o666); err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"HADOOP_CONF_DIR": dir, "SECOND": "two", "HADOOP_USER_NAME": "somebody",
		"KRB5_CONFIG": filepath.Join(dir, "none"), "KRB5CCNAME": "", "KRB5_CLIENT_KTNAME": ""} {
		t.Setenv(k, v)
	}
}

// TestNamenodes: a name service stands for its namenodes and no others, anything else is a host.
func TestNamenodes(t *testing.T) {
	configured(t, "")
	for address, want := range map[string]string{
		"hdfs://dead/x": "[one.example.org:9000 two:8020] somebody", "hdfs://other/x": "[third:1] somebody",
		"hdfs://host/x": "[host:8020] somebody", "hdfs://me@host:9/x": "[host:9] me",
		"hdfs://[::1]/x": "[[::1]:8020] somebody", "hdfs:///x/y": "[one.example.org:9000 two:8020] somebody",
	} {
		a, err := remote.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		o, err := settings(a)
		if got := fmt.Sprint(o.Addresses, " ", o.User); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", address, got, err, want)
		}
	}
	if _, err := settings(remote.Address{Scheme: "hdfs", Host: "half"}); err == nil ||
		!strings.Contains(err.Error(), "dfs.namenode.rpc-address.half.a") {
		t.Errorf("a namenode without an address: %v", err)
	}
}

// TestDefaultHost: hdfs:///path needs a configuration.
func TestDefaultHost(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", t.TempDir())
	if _, err := remote.Parse("hdfs:///x"); err == nil || !strings.Contains(err.Error(), "HADOOP_CONF_DIR") {
		t.Errorf("got %v", err)
	}
}

// TestKerberosIsDemanded: where the configuration demands Kerberos, a missing ticket is an error, never an attempt
// without one.
func TestKerberosIsDemanded(t *testing.T) {
	configured(t, "<property><name>hadoop.security.authentication</name><value>Kerberos</value></property>")
	if _, err := Open(t.Context(), remote.Address{Scheme: "hdfs", Host: "dead"}); err == nil ||
		!strings.Contains(err.Error(), "KRB5_CONFIG") {
		t.Errorf("got %v", err)
	}
}

// TestBrokenConfiguration: a configuration that cannot be read is not the same as none.
func TestBrokenConfiguration(t *testing.T) {
	configured(t, "<property>")
	if _, err := Open(t.Context(), remote.Address{Scheme: "hdfs", Host: "dead"}); err == nil {
		t.Error("it was read")
	}
}

type exception string

func (e exception) Error() string     { return "failed " + string(e) }
func (e exception) Method() string    { return "m" }
func (e exception) Desc() string      { return "ERROR" }
func (e exception) Exception() string { return string(e) }
func (e exception) Message() string   { return "a secret" }

// TestReasons: which failures may pass, and which mean that a file is missing or denied.
func TestReasons(t *testing.T) {
	for _, c := range []struct {
		err   error
		kind  error
		again bool
	}{
		{exception("java.io.FileNotFoundException"), fs.ErrNotExist, false},
		{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, fs.ErrNotExist, false},
		{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}, fs.ErrPermission, false},
		{exception("org.apache.hadoop.security.AccessControlException"), fs.ErrPermission, false},
		{exception("org.apache.hadoop.hdfs.server.namenode.SafeModeException"), nil, true},
		{exception("org.apache.hadoop.ipc.StandbyException"), nil, true},
		{exception("java.lang.NullPointerException"), nil, false},
		{errors.New("no available namenodes: StandbyException"), nil, true},
		{errors.New("invalid checksum"), nil, true},
	} {
		var got *remote.Error
		if !errors.As(reason(c.err), &got) || got.Kind != c.kind || got.Again != c.again {
			t.Errorf("%v: got %+v", c.err, got)
		} else if strings.Contains(got.Error(), "secret") || got.Error() == "" {
			t.Errorf("%v: %q", c.err, got)
		}
	}
}
