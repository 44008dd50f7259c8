package hdfs

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/colinmarc/hdfs/v2"
	"github.com/colinmarc/hdfs/v2/hadoopconf"
	kerberos "github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"stoa/store/remote"
)

const defaultPort = "8020"

// configuration reads Hadoop's configuration files; it is empty if there are none.
func configuration() (hadoopconf.HadoopConf, error) {
	dirs := []string{"/etc/hadoop/conf"}
	if home := os.Getenv("HADOOP_HOME"); home != "" {
		dirs = []string{filepath.Join(home, "etc", "hadoop"), filepath.Join(home, "conf")}
	}
	if dir := os.Getenv("HADOOP_CONF_DIR"); dir != "" {
		dirs = []string{dir}
	}
	for _, dir := range dirs {
		c, err := hadoopconf.Load(dir)
		if err != nil {
			return nil, fmt.Errorf("the configuration of Hadoop in %s cannot be read: %w", dir, err)
		}
		if c != nil {
			return expanded(c), nil
		}
	}
	return hadoopconf.HadoopConf{}, nil
}

// expanded replaces ${NAME} in values by the value of that property, or by a variable of the environment
// (${env.NAME}).
func expanded(c hadoopconf.HadoopConf) hadoopconf.HadoopConf {
	const most = 20 // replacements in one value, as in Hadoop
	for k, v := range c {
		v = strings.TrimSpace(v)
		for range most {
			before, rest, ok := strings.Cut(v, "${")
			name, after, closed := strings.Cut(rest, "}")
			if !ok || !closed {
				break
			}
			value, known := c[name]
			if env, ok := strings.CutPrefix(name, "env."); ok {
				value, known = os.LookupEnv(env)
			}
			if !known {
				break
			}
			v = before + value + after
		}
		c[k] = v
	}
	return c
}

// defaultHost returns the host in hdfs:///path: that of fs.defaultFS.
func defaultHost() (string, error) {
	c, err := configuration()
	if err != nil {
		return "", err
	}
	u, err := url.Parse(cmp.Or(c["fs.defaultFS"], c["fs.default.name"]))
	if err != nil || u.Scheme != "hdfs" || u.Host == "" {
		return "", errors.New("expected hdfs://HOST in fs.defaultFS of Hadoop's configuration, found none; its " +
			"directory is HADOOP_CONF_DIR")
	}
	return u.Host, nil
}

// settings returns how the file system of an address is reached.
func settings(a remote.Address) (o hdfs.ClientOptions, err error) {
	c, err := configuration()
	if err != nil {
		return o, err
	}
	o = hdfs.ClientOptionsFromConf(c)
	if o.Addresses, err = namenodes(c, a.Host); err != nil {
		return o, err
	}
	if o.KerberosClient != nil {
		if o.KerberosClient, err = ticket(); err != nil {
			return o, err
		}
		if o.KerberosServicePrincipleName == "" {
			return o, errors.New("expected dfs.namenode.kerberos.principal in Hadoop's configuration, found none")
		}
		return o, nil
	}
	o.User = cmp.Or(a.User, os.Getenv("HADOOP_USER_NAME"))
	if o.User == "" {
		u, err := user.Current()
		if err != nil {
			return o, errors.New("expected a user in the address or in HADOOP_USER_NAME, found none")
		}
		o.User = u.Username
	}
	return o, nil
}

// namenodes returns the addresses of a name service, or that of a host.
func namenodes(c hadoopconf.HadoopConf, host string) (all []string, err error) {
	for id := range strings.SplitSeq(c["dfs.ha.namenodes."+host], ",") {
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		at := c["dfs.namenode.rpc-address."+host+"."+id]
		if at == "" {
			return nil, fmt.Errorf("expected dfs.namenode.rpc-address.%s.%s in Hadoop's configuration, found none",
				host, id)
		}
		all = append(all, withPort(at))
	}
	if len(all) > 0 {
		return all, nil
	}
	if at := c["dfs.namenode.rpc-address."+host]; at != "" {
		return []string{withPort(at)}, nil
	}
	return []string{withPort(host)}, nil
}

func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), defaultPort)
}

// ticket returns a client of Kerberos, with the user's ticket or keytab.
func ticket() (*kerberos.Client, error) {
	conf, err := config.Load(cmp.Or(os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf"))
	if err != nil {
		return nil, errors.New("the configuration of Kerberos (KRB5_CONFIG, else /etc/krb5.conf) cannot be read")
	}
	if name := os.Getenv("KRB5_CLIENT_KTNAME"); name != "" {
		return byKeytab(conf, strings.TrimPrefix(name, "FILE:"))
	}
	name := cmp.Or(os.Getenv("KRB5CCNAME"), "/tmp/krb5cc_"+strconv.Itoa(os.Getuid()))
	if kind, _, ok := strings.Cut(name, ":"); ok && kind != "FILE" {
		return nil, fmt.Errorf("KRB5CCNAME: expected FILE:PATH, found one of the kind %s", kind)
	}
	cache, err := credentials.LoadCCache(strings.TrimPrefix(name, "FILE:"))
	if err != nil {
		return nil, errors.New("for Kerberos, which Hadoop's configuration demands, expected a ticket (kinit; " +
			"KRB5CCNAME) or a keytab (KRB5_CLIENT_KTNAME), found none")
	}
	c, err := kerberos.NewFromCCache(cache, conf, kerberos.DisablePAFXFAST(true))
	if err != nil {
		return nil, errors.New("the ticket of Kerberos is not valid, or has expired: kinit makes a new one")
	}
	return c, nil
}

// byKeytab returns a client of Kerberos for the first principal of a keytab.
func byKeytab(conf *config.Config, name string) (*kerberos.Client, error) {
	keys, err := keytab.Load(name)
	if err != nil || len(keys.Entries) == 0 {
		return nil, errors.New("KRB5_CLIENT_KTNAME: expected a keytab with a principal, found none")
	}
	p := keys.Entries[0].Principal
	c := kerberos.NewWithKeytab(strings.Join(p.Components, "/"), p.Realm, keys, conf, kerberos.DisablePAFXFAST(true))
	if err := c.Login(); err != nil {
		return nil, fmt.Errorf("refused by Kerberos: %s", strings.Join(p.Components, "/"))
	}
	return c, nil
}
