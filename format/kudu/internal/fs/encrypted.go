package fs

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"

	"stoa/fault"
	"stoa/format/kudu/internal/pbc"
	"stoa/store"
)

// A server with encryption at rest begins each of its files, except for the instance files, with a header:
//
//	magic      7  "kuduenc"
//	algorithm  1  0: AES-128 in counter mode
//	key       32  the file's key, 16 bytes, encrypted with the server's by AES-128 without chaining; then zeros
//	zeros     24
//
// The rest of the file is encrypted with the file's key. The counter is the offset in the file, from its header on,
// divided by 16, as a big-endian number of 16 bytes. The server's key is in the file instance, itself encrypted by a
// key provider: a KMS, or Kudu's default one, which is not secret.
const (
	encryptedMagic  = "kuduenc"
	encryptedHeader = 64
)

// DefaultKeys is the value of option encryption-key for keys of Kudu's default provider.
const DefaultKeys = "default"

// Decrypted returns tree with the files of encrypted servers decrypted, or tree itself if keys is "", in which case
// such servers are reported. keys is DefaultKeys, or the name of a file of tree with the servers' keys as decrypted by
// their KMS: one key for all servers, or lines UUID KEY. A key is hexadecimal, or the answer of the KMS, a JSON object
// with "material" in Base64. Offsets in errors refer to the decrypted content without the header, except in containers.
func Decrypted(ctx context.Context, tree store.Tree, keys string) (store.Tree, error) {
	if keys == "" {
		return tree, nil
	}
	tree = OrLocal(tree)
	r := &keyRing{servers: map[string][]byte{}, roots: map[string]*Instance{}}
	if keys == DefaultKeys {
		return decrypting{tree, keys, r}, nil
	}
	src, err := tree.Open(ctx, keys)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	const most = 1 << 20
	if src.Size() > most {
		return nil, fault.Invalidf("%s: expected keys, of %d bytes at most, found %d", keys, most, src.Size())
	}
	text := make([]byte, src.Size())
	if _, err := src.ReadAt(ctx, text, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := r.parse(string(text)); err != nil {
		return nil, fault.Invalidf("%s: %v", keys, err)
	}
	return decrypting{tree, keys, r}, nil
}

// keyRing has the keys of servers.
type keyRing struct {
	servers map[string][]byte // by UUID, as given; "": key of all servers
	mu      sync.Mutex
	roots   map[string]*Instance // instances of directories examined so far; nil: the directory has none
}

// parse reads a file of keys.
func (r *keyRing) parse(text string) error {
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "{") {
		key, err := parseKey(text)
		r.servers[""] = key
		return err
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		uuid, key := "", line
		if first, rest, ok := strings.Cut(line, " "); ok && IsUUID(first) {
			uuid, key = first, strings.TrimSpace(rest)
		}
		b, err := parseKey(key)
		if err != nil {
			return fault.Invalidf("line %d: %v", n, err)
		}
		if r.servers[uuid] != nil {
			return fault.Invalidf("line %d: expected one key a server, found another", n)
		}
		r.servers[uuid] = b
	}
	if len(r.servers) == 0 {
		return errors.New("expected keys, found none")
	}
	return nil
}

// parseKey reads a key. Errors do not repeat it.
func parseKey(text string) (key []byte, err error) {
	var answer struct{ Material string }
	if strings.HasPrefix(text, "{") {
		if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Material == "" {
			return nil, errors.New(`expected a JSON object with "material", found none`)
		}
		plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(answer.Material, "="))
		key, err = base64.RawStdEncoding.DecodeString(plain)
	} else {
		key, err = hex.DecodeString(text)
	}
	if err != nil || len(key) != aes.BlockSize {
		return nil, errors.New("expected a key of 16 bytes: 32 hexadecimal digits, or a KMS's answer as JSON")
	}
	return key, nil
}

// key returns the key of the server to which a file belongs: that of the nearest directory above the file that has an
// instance file.
func (r *keyRing) key(ctx context.Context, tree store.Tree, name string) ([]byte, error) {
	const levels = 8
	dir := path.Dir(name)
	for range levels {
		in, err := r.instance(ctx, tree, dir)
		if err != nil {
			return nil, err
		}
		if in != nil && in.Encrypted {
			return r.unwrapped(in)
		}
		up := path.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	if k := r.servers[""]; k != nil {
		return k, nil
	}
	return nil, fault.Unsupportedf(fault.Span{Object: name}, "",
		"the file is encrypted, and no instance file above it says by whose key")
}

// instance returns the contents of a directory's instance file; nil if there is none.
func (r *keyRing) instance(ctx context.Context, tree store.Tree, dir string) (*Instance, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in, ok := r.roots[dir]; ok {
		return in, nil
	}
	in, _, err := readInstance(ctx, tree, path.Join(dir, InstanceFile), pbc.Options{})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r.roots[dir] = nil
	if err == nil {
		r.roots[dir] = &in
	}
	return r.roots[dir], nil
}

// unwrapped returns the decrypted key of a server.
func (r *keyRing) unwrapped(in *Instance) ([]byte, error) {
	if k := r.servers[in.UUID]; k != nil {
		return k, nil
	}
	if k := r.servers[""]; k != nil {
		return k, nil
	}
	if len(r.servers) > 0 {
		return nil, fault.Unsupportedf(in.Key, "instance.server_key",
			"expected the key of server %s, found those of others", in.UUID)
	}
	k, err := hex.DecodeString(in.Wrapped)
	if err != nil || len(k) != aes.BlockSize {
		return nil, fault.Unsupportedf(in.Key, "instance.server_key",
			"expected 32 hexadecimal digits, as Kudu's default key provider writes them, found %d characters; the key "+
				"provider's answer must be given in a file", len(in.Wrapped))
	}
	const frobbed = 42 // Kudu's default provider combines each byte with this one
	for i := range k {
		k[i] ^= frobbed
	}
	return k, nil
}

// decrypting is a tree that decrypts encrypted files.
type decrypting struct {
	store.Tree
	name string // name of the file of keys
	ring *keyRing
}

// Over returns tree with files decrypted as t decrypts its own; tree itself if t does not decrypt.
func Over(t, tree store.Tree) store.Tree {
	if d, ok := t.(decrypting); ok {
		return decrypting{tree, d.name, d.ring}
	}
	return tree
}

// keysOf identifies the keys with which a tree decrypts.
type keysOf struct {
	tree any
	name string
}

// Lasting is store.Lasting extended to trees that decrypt; a nil tree is the machine's file system.
func Lasting(t store.Tree) (below store.Tree, same any) {
	d, ok := t.(decrypting)
	if !ok {
		return store.Lasting(OrLocal(t))
	}
	below, same = store.Lasting(d.Tree)
	if same != nil {
		same = keysOf{same, d.name}
	}
	return decrypting{below, d.name, d.ring}, same
}

// decrypts reports whether a tree decrypts files.
func decrypts(t store.Tree) bool {
	_, ok := t.(decrypting)
	return ok
}

// shifted reports whether offsets in a decrypted file count from the end of its header. In containers they count from
// the beginning of the file.
func shifted(name string) bool { return path.Ext(name) != ".data" }

// Open opens a file and decrypts it.
func (d decrypting) Open(ctx context.Context, name string) (store.Source, error) {
	src, err := d.Tree.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	out, err := d.plain(ctx, name, src)
	if err != nil {
		src.Close()
		return nil, err
	}
	return out, nil
}

// plain returns the plain content of a file that may be encrypted.
func (d decrypting) plain(ctx context.Context, name string, src store.Source) (store.Source, error) {
	var head [encryptedHeader]byte
	if src.Size() < encryptedHeader {
		return src, nil
	}
	if _, err := src.ReadAt(ctx, head[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !strings.HasPrefix(string(head[:]), encryptedMagic) {
		return src, nil
	}
	at := fault.Span{Object: name, Off: int64(len(encryptedMagic)), Len: 1}
	if algorithm := head[len(encryptedMagic)]; algorithm != 0 {
		return nil, fault.Unsupportedf(at, "encryption.algorithm", "expected 0, AES-128 in counter mode, found %d",
			algorithm)
	}
	key, err := d.ring.key(ctx, d.Tree, name)
	if err != nil {
		return nil, err
	}
	server, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	var own [aes.BlockSize]byte
	server.Decrypt(own[:], head[len(encryptedMagic)+1:][:aes.BlockSize])
	block, err := aes.NewCipher(own[:])
	if err != nil {
		return nil, err
	}
	out := &plainSource{Source: src, block: block}
	if shifted(name) {
		out.shift = encryptedHeader
	}
	return out, nil
}

// Stat reports the length of the plain content.
func (d decrypting) Stat(ctx context.Context, name string) (store.Info, error) {
	info, err := d.Tree.Stat(ctx, name)
	if err != nil {
		return info, err
	}
	return d.sized(ctx, info), nil
}

// List reports the lengths of the plain contents.
func (d decrypting) List(ctx context.Context, dir string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for info, err := range d.Tree.List(ctx, dir) {
			if err == nil {
				info = d.sized(ctx, info)
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// sized subtracts the header from the length of a file of an encrypted server.
func (d decrypting) sized(ctx context.Context, info store.Info) store.Info {
	if info.Dir || info.Size < encryptedHeader || !shifted(info.Name) ||
		slices.Contains([]string{InstanceFile, DirInstanceFile}, path.Base(info.Name)) {
		return info
	}
	if _, err := d.ring.key(ctx, d.Tree, info.Name); err == nil {
		info.Size -= encryptedHeader
	}
	return info
}

// plainSource is an encrypted file.
type plainSource struct {
	store.Source
	block cipher.Block
	shift int64
}

func (p *plainSource) Size() int64 { return p.Source.Size() - p.shift }

// ReadAt decrypts what it reads. The header of a container reads as zeros.
func (p *plainSource) ReadAt(ctx context.Context, b []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errors.New("negative offset")
	}
	off += p.shift
	n, err = p.Source.ReadAt(ctx, b, off)
	var iv [aes.BlockSize]byte
	binary.BigEndian.PutUint64(iv[8:], uint64(off)/aes.BlockSize)
	stream := cipher.NewCTR(p.block, iv[:])
	if skip := off % aes.BlockSize; skip > 0 {
		var dropped [aes.BlockSize]byte
		stream.XORKeyStream(dropped[:skip], dropped[:skip])
	}
	stream.XORKeyStream(b[:n], b[:n])
	if off < encryptedHeader {
		clear(b[:min(int64(n), encryptedHeader-off)])
	}
	return n, err
}
