package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// jsonDoc is a document that verbs print with -f json: a JSON schema of it is in docs/json.
type jsonDoc struct {
	name  string
	what  string
	form  string   // object; array: of objects; lines: an object a line, of one of the types
	types []string // PACKAGE.TYPE; without a PACKAGE: as it stands in inline
}

var jsonDocs = []jsonDoc{
	{"ls", "stoa ls -f json", "array", []string{"ls.entryDoc"}},
	{"ls-segments", "stoa ls --segments -f json", "array", []string{"ls.segmentDoc"}},
	{"ls-blocks", "stoa ls --blocks -f json", "array", []string{"strings"}},
	{"census", "stoa census -f json", "array", []string{"look.CensusTable"}},
	{"history", "stoa history -f json", "array", []string{"look.TableHistory"}},
	{"schema", "stoa schema -f json", "object", []string{"schemafmt.SchemaJSON"}},
	{"meta", "stoa meta -f json", "array", []string{"look.metaDoc"}},
	{"stats", "stoa stats -f json", "array", []string{"look.statsDoc"}},
	{"stats-rowsets", "stoa stats --rowsets -f json", "array", []string{"strings"}},
	{"advise", "stoa advise -f json", "object", []string{"look.adviceDoc"}},
	{"describe", "stoa describe -f json", "array", []string{"look.nodeDoc"}},
	{"count", "stoa count -f json", "object", []string{"look.counted"}},
	{"explain", "stoa explain -f json", "object", []string{"look.explainDoc"}},
	{"plan", "stoa plan: the schema, a split a line, the end of the plan", "lines",
		[]string{"look.planHead", "stoa.Split", "look.planEnd"}},
	{"scan", "stoa scan --splits -: the line that ends the answer to a split", "lines", []string{"look.answer"}},
	{"convert", "stoa convert -f json, and recover -f json", "object", []string{"convert.summaryDoc"}},
	{"convert-all", "stoa convert --all -f json, and recover --all -f json: a table a line", "lines",
		[]string{"convert.summaryDoc", "rerun.Failed"}},
	{"verify", "stoa verify -f json", "object", []string{"look.VerifyDoc"}},
	{"manifest", "the file that --manifest names: what was lost", "object", []string{"reading.manifest"}},
	{"rescue", "stoa rescue -f json, and report.json in its output", "object", []string{"convert.rescueDoc"}},
	{"migrate", "stoa migrate -f json, and report.json in its output", "object", []string{"convert.migrateDoc"}},
	{"seal", "stoa seal -f json", "object", []string{"look.sealedDoc"}},
	{"recover-seal", "stoa recover --seal -f json", "object", []string{"look.repairedDoc"}},
	{"diff", "stoa diff -f json", "object", []string{"look.diffDoc"}},
	{"finding", "stoa finding -f json", "array", []string{"about.CodeDoc"}},
	{"formats", "stoa formats -f json", "array", []string{"about.formatDoc"}},
	{"demo", "stoa demo -f json", "object", []string{"about.demoDoc"}},
	{"config", "stoa config -f json", "array", []string{"about.configDoc"}},
	{"version", "stoa version -f json", "object", []string{"about.versionDoc"}},
	{"load", "stoa load -f json", "object", []string{"stoa.AppendResult"}},
	{"merge", "stoa merge -f json", "object", []string{"stoa.MergeResult"}},
	{"change", "-f json of the verbs that change a table: create, update, delete, compact, clean, add-column …",
		"object", []string{"change.result"}},
}

type node = map[string]any

// inline are schemas of what is not a type of its own, and of types that encode themselves.
var inline = map[string]node{
	"strings": {"type": "object", "additionalProperties": node{"type": "string"}},
	"stoa/cmd/stoa/internal/schemafmt.Pairs": {"type": "object", "additionalProperties": node{"anyOf": []node{
		{"type": "string"}, {"type": "object", "properties": node{"base64": node{"type": "string"}}}}}},
	"stoa.Accounts": {"type": "object", "properties": node{"declared": node{"type": []string{"integer", "null"}},
		"out": node{"type": "integer"}, "lost": node{"type": "integer"}, "exact": node{"type": "boolean"}},
		"required": []string{"declared", "out", "lost", "exact"}, "additionalProperties": false},
}

// typesOf derives schemas from Go's types, with the comments of the fields.
type typesOf struct {
	t     *testing.T
	dirs  map[string]string // of the packages of stoa
	names map[string]string // package by its last element, of the command's first
	imp   types.Importer
	fset  *token.FileSet
	docs  map[string]map[string]string // PACKAGE.TYPE: comments by field
	defs  node
}

func newTypesOf(t *testing.T) *typesOf {
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,Dir", "stoa/cmd/stoa").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	x := &typesOf{t: t, dirs: map[string]string{}, names: map[string]string{}, fset: token.NewFileSet(),
		docs: map[string]map[string]string{}}
	exports := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export, Dir string }
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if p.ImportPath != "stoa" && !strings.HasPrefix(p.ImportPath, "stoa/") {
			continue
		}
		x.dirs[p.ImportPath] = p.Dir
		last := p.ImportPath[strings.LastIndexByte(p.ImportPath, '/')+1:]
		if strings.HasPrefix(p.ImportPath, "stoa/cmd/") || x.names[last] == "" {
			x.names[last] = p.ImportPath
		}
	}
	x.names["stoa"], x.names["format"] = "stoa", "stoa/format"
	x.imp = importer.ForCompiler(x.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	return x
}

// schema returns the schema of a document.
func (x *typesOf) schema(d jsonDoc) []byte {
	x.defs = node{}
	var each []node
	for _, name := range d.types {
		if s := inline[name]; s != nil {
			each = append(each, s)
			continue
		}
		pkg, typ, _ := strings.Cut(name, ".")
		each = append(each, x.named(x.names[pkg], typ))
	}
	s := node{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": d.what}
	if len(each) > 1 {
		s["anyOf"] = each
	} else if d.form == "array" {
		s["type"], s["items"] = "array", each[0]
	} else {
		for k, v := range each[0] {
			s[k] = v
		}
	}
	if len(x.defs) > 0 {
		s["$defs"] = x.defs
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		x.t.Fatal(err)
	}
	return append(b, '\n')
}

// named returns a reference to a type, which is defined beside.
func (x *typesOf) named(pkg, typ string) node {
	if s := inline[pkg+"."+typ]; s != nil {
		return s
	}
	if _, ok := x.defs[typ]; !ok {
		x.defs[typ] = nil // it may contain itself
		p, err := x.pkg(pkg)
		if err != nil {
			x.t.Fatal(err)
		}
		obj := p.Scope().Lookup(typ)
		if obj == nil {
			x.t.Fatalf("%s has no type %s", pkg, typ)
		}
		if obj.Type().Underlying() == nil {
			x.t.Fatal(typ)
		}
		if s, ok := obj.Type().Underlying().(*types.Struct); ok {
			x.defs[typ] = x.object(s, pkg+"."+typ)
		} else {
			x.defs[typ] = x.of(obj.Type().Underlying())
		}
	}
	return node{"$ref": "#/$defs/" + typ}
}

// pkg type-checks a package from its source: the export data may lack what is not exported.
func (x *typesOf) pkg(path string) (*types.Package, error) {
	if x.docs[path] == nil {
		x.docs[path] = map[string]string{}
	}
	names, err := filepath.Glob(filepath.Join(x.dirs[path], "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, n := range names {
		if strings.HasSuffix(n, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(x.fset, n, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				x.comments(path+"."+spec.Name.Name, s)
			}
			return true
		})
	}
	conf := types.Config{Importer: x.imp, Error: func(error) {}} // files for other systems declare things twice
	p, _ := conf.Check(path, x.fset, files, nil)
	return p, nil
}

// comments keeps the comments on the fields of a struct.
func (x *typesOf) comments(typ string, s *ast.StructType) {
	x.docs[typ] = map[string]string{}
	for _, f := range s.Fields.List {
		text := strings.TrimSpace(f.Doc.Text() + " " + f.Comment.Text())
		for _, n := range f.Names {
			x.docs[typ][n.Name] = strings.Join(strings.Fields(text), " ")
		}
	}
}

func (x *typesOf) object(s *types.Struct, typ string) node {
	properties, required := node{}, []string{}
	x.fields(s, typ, properties, &required)
	return node{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func (x *typesOf) fields(s *types.Struct, typ string, properties node, required *[]string) {
	for i := range s.NumFields() {
		f, tag := s.Field(i), reflect.StructTag(s.Tag(i)).Get("json")
		name, more, _ := strings.Cut(tag, ",")
		if name == "-" || name == "" && !f.Embedded() {
			continue
		}
		if name == "" {
			n, _ := f.Type().(*types.Named)
			inner, _ := f.Type().Underlying().(*types.Struct)
			x.fields(inner, n.Obj().Pkg().Path()+"."+n.Obj().Name(), properties, required)
			continue
		}
		t, optional := f.Type(), strings.Contains(more, "omitempty") || strings.Contains(more, "omitzero")
		if p, ok := t.(*types.Pointer); ok && optional {
			t = p.Elem()
		}
		p := x.of(t)
		if text := x.docs[typ][f.Name()]; text != "" {
			if strings.HasPrefix(text, "null = ") && p["type"] != nil {
				p["type"] = []any{p["type"], "null"}
			}
			c := node{"description": text}
			for k, v := range p {
				c[k] = v
			}
			p = c
		}
		properties[name] = p
		if !optional {
			*required = append(*required, name)
		}
	}
}

// of returns the schema of a type.
func (x *typesOf) of(t types.Type) node {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		pkg := t.Obj().Pkg()
		if pkg == nil || x.dirs[pkg.Path()] == "" {
			return x.of(t.Underlying())
		}
		if s := inline[pkg.Path()+"."+t.Obj().Name()]; s != nil {
			return s
		}
		if m, _, _ := types.LookupFieldOrMethod(types.NewPointer(t), true, pkg, "MarshalJSON"); m != nil {
			return node{} // its own form; see the type
		}
		if _, ok := t.Underlying().(*types.Struct); ok {
			return x.named(pkg.Path(), t.Obj().Name())
		}
		return x.of(t.Underlying())
	case *types.Pointer:
		return node{"anyOf": []node{x.of(t.Elem()), {"type": "null"}}}
	case *types.Slice:
		if b, ok := t.Elem().(*types.Basic); ok && b.Kind() == types.Byte {
			return node{"type": "string", "contentEncoding": "base64"}
		}
		return node{"type": "array", "items": x.of(t.Elem())}
	case *types.Map:
		return node{"type": "object", "additionalProperties": x.of(t.Elem())}
	case *types.Basic:
		switch {
		case t.Info()&types.IsBoolean != 0:
			return node{"type": "boolean"}
		case t.Info()&types.IsInteger != 0:
			return node{"type": "integer"}
		case t.Info()&types.IsFloat != 0:
			return node{"type": "number"}
		}
		return node{"type": "string"}
	}
	return node{}
}
