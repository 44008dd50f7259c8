package meta

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"

	"stoa/fault"
)

// Keyring holds the keys that a user supplied for an encrypted file, by purpose.
type Keyring struct {
	footer  []byte
	columns map[string][]byte // by path
	ids     map[string][]byte // by the key metadata stored in the file
	prefix  []byte            // the AAD prefix; nil if the file's own is used
}

// maxKeyFile is the largest size of a key file.
const maxKeyFile = 1 << 20

// ReadKeyring reads a key file:
//
//	# a comment
//	footer 000102030405060708090a0b0c0d0e0f
//	column a.b base64:AAECAwQFBgcICQoLDA0ODw==
//	column " c" 000102030405060708090a0b0c0d0e0f
//	key kf text:0123456789012345
//	aad-prefix text:orders
//
// A key is written in hexadecimal, or after the prefix base64: or text:.
func ReadKeyring(name string) (*Keyring, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	k := &Keyring{columns: map[string][]byte{}, ids: map[string][]byte{}}
	in := bufio.NewScanner(io.LimitReader(f, maxKeyFile+1))
	in.Buffer(nil, maxKeyFile)
	for n := 1; in.Scan(); n++ {
		line := strings.TrimSpace(in.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if what := k.parseLine(line); what != "" { // the line itself is secret
			return nil, fault.Invalidf("%s, line %d: %s", name, n, what)
		}
	}
	return k, in.Err()
}

// parseLine adds one line. It returns a description of the error in the line, or "".
func (k *Keyring) parseLine(line string) string {
	kind, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	name, secret := "", rest
	switch kind {
	case "footer", "aad-prefix":
	case "column", "key":
		i := strings.LastIndexAny(rest, " \t")
		if i < 0 {
			return "it has no key after the name"
		}
		name, secret = strings.TrimSpace(rest[:i]), rest[i+1:]
		if quoted, more := CutName(name, ""); kind == "column" && more == "" {
			name = quoted
		}
	default:
		return "it does not begin with footer, column, key or aad-prefix"
	}
	b, ok := secretBytes(secret)
	switch n := len(b); {
	case !ok && kind == "aad-prefix":
		return "the prefix is neither hexadecimal digits nor base64:… nor text:…"
	case !ok:
		return "the key is neither hexadecimal digits nor base64:… nor text:…"
	case kind != "aad-prefix" && n != 16 && n != 24 && n != 32:
		return "a key of " + strconv.Itoa(n) + " bytes: AES keys have 16, 24 or 32"
	}
	if !k.set(kind, name, b) {
		return "another line gives a different " + strings.TrimSpace(kind+" "+name)
	}
	return ""
}

// set stores a key or the prefix. It returns false if a different one of that name is already there.
func (k *Keyring) set(kind, name string, b []byte) bool {
	var before []byte
	switch kind {
	case "footer":
		before, k.footer = k.footer, b
	case "aad-prefix":
		before, k.prefix = k.prefix, b
	case "column":
		before, k.columns[name] = k.columns[name], b
	case "key":
		before, k.ids[name] = k.ids[name], b
	}
	return before == nil || bytes.Equal(before, b)
}

func secretBytes(s string) ([]byte, bool) {
	if t, ok := strings.CutPrefix(s, "text:"); ok {
		return []byte(t), true
	}
	if t, ok := strings.CutPrefix(s, "base64:"); ok {
		b, err := base64.StdEncoding.DecodeString(t)
		return b, err == nil
	}
	b, err := hex.DecodeString(s)
	return b, err == nil && s != ""
}

// FindFooter returns the footer key, whose metadata in the file is id; nil if it was not supplied. In files of Arrow
// and parquet-mr whose keys are wrapped by a key management service, id is key material: JSON that names the master
// key.
func (k *Keyring) FindFooter(id []byte) []byte {
	if k == nil {
		return nil
	}
	return k.orByID(k.footer, id)
}

// Find returns the key of a column, whose metadata in the file is id; nil if it was not supplied.
func (k *Keyring) Find(column string, id []byte) []byte {
	if k == nil {
		return nil
	}
	return k.orByID(k.columns[column], id)
}

func (k *Keyring) orByID(key, id []byte) []byte {
	if key == nil && len(id) > 0 {
		key = k.ids[string(id)]
	}
	if key == nil {
		key = k.ids[masterKey(id)]
	}
	return key
}

// masterKey returns the name of the master key in key material; "" if id is not key material.
func masterKey(id []byte) string {
	var material struct{ MasterKeyID string }
	if json.Unmarshal(id, &material) != nil {
		return ""
	}
	return material.MasterKeyID
}
