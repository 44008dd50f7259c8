package main

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// tableType is the type of every table.
const tableType = "TABLE"

// command is the answer to a request for metadata: the request itself is the ticket.
func command(desc *flight.FlightDescriptor, sc *arrow.Schema) (*flight.FlightInfo, error) {
	return &flight.FlightInfo{Schema: flight.SerializeSchema(sc, memory.DefaultAllocator), FlightDescriptor: desc,
		Endpoint:     []*flight.FlightEndpoint{{Ticket: &flight.Ticket{Ticket: desc.GetCmd()}}},
		TotalRecords: -1, TotalBytes: -1}, nil
}

// rowsOf is a stream of one batch, whose rows fill appends.
func rowsOf(sc *arrow.Schema, fill func(*array.RecordBuilder) error) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	if fill != nil {
		if err := fill(b); err != nil {
			return nil, nil, grpcError(err)
		}
	}
	out := make(chan flight.StreamChunk, 1)
	out <- flight.StreamChunk{Data: b.NewRecordBatch()}
	close(out)
	return sc, out, nil
}

func text(b *array.RecordBuilder, values ...string) {
	for i, v := range values {
		b.Field(i).(*array.StringBuilder).Append(v)
	}
}

func (s *server) GetFlightInfoCatalogs(_ context.Context, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return command(d, schema_ref.Catalogs)
}

func (s *server) DoGetCatalogs(context.Context) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return rowsOf(schema_ref.Catalogs, func(b *array.RecordBuilder) error {
		text(b, catalogueName)
		return nil
	})
}

func (s *server) GetFlightInfoSchemas(_ context.Context, _ flightsql.GetDBSchemas, d *flight.FlightDescriptor) (
	*flight.FlightInfo, error) {
	return command(d, schema_ref.DBSchemas)
}

func (s *server) DoGetDBSchemas(ctx context.Context, q flightsql.GetDBSchemas) (*arrow.Schema,
	<-chan flight.StreamChunk, error) {
	return rowsOf(schema_ref.DBSchemas, func(b *array.RecordBuilder) error {
		all, err := s.matching(ctx, q.GetCatalog(), q.GetDBSchemaFilterPattern(), nil)
		last := ""
		for i, t := range all {
			if i == 0 || t.schema != last {
				text(b, catalogueName, t.schema)
			}
			last = t.schema
		}
		return err
	})
}

func schemaOfTables(q flightsql.GetTables) *arrow.Schema {
	if q.GetIncludeSchema() {
		return schema_ref.TablesWithIncludedSchema
	}
	return schema_ref.Tables
}

func (s *server) GetFlightInfoTables(_ context.Context, q flightsql.GetTables, d *flight.FlightDescriptor) (
	*flight.FlightInfo, error) {
	return command(d, schemaOfTables(q))
}

// DoGetTables lists tables. A table that cannot be opened has no columns here; what is wrong is said when it is read.
func (s *server) DoGetTables(ctx context.Context, q flightsql.GetTables) (*arrow.Schema, <-chan flight.StreamChunk,
	error) {
	return rowsOf(schemaOfTables(q), func(b *array.RecordBuilder) error {
		if types := q.GetTableTypes(); len(types) > 0 && !slices.Contains(types, tableType) {
			return nil
		}
		all, err := s.matching(ctx, q.GetCatalog(), q.GetDBSchemaFilterPattern(), q.GetTableNameFilterPattern())
		for _, t := range all {
			text(b, catalogueName, t.schema, t.name, tableType)
			if !q.GetIncludeSchema() {
				continue
			}
			sc := arrow.NewSchema(nil, nil)
			if open, err := t.open(ctx); err == nil {
				sc = open.Schema()
				open.Close()
			} else if ctx.Err() != nil {
				return ctx.Err()
			}
			b.Field(4).(*array.BinaryBuilder).Append(flight.SerializeSchema(described(sc, t), memory.DefaultAllocator))
		}
		return err
	})
}

// described has with each column its catalogue, schema, table and type, as clients of JDBC expect.
func described(sc *arrow.Schema, t table) *arrow.Schema {
	fields := slices.Clone(sc.Fields())
	for i := range fields {
		m := flightsql.NewColumnMetadataBuilder()
		m.CatalogName(catalogueName).SchemaName(t.schema).TableName(t.name).TypeName(fields[i].Type.Name()).
			IsReadOnly(true).IsSearchable(true)
		fields[i].Metadata = m.Metadata()
	}
	return arrow.NewSchema(fields, nil)
}

func (s *server) GetFlightInfoTableTypes(_ context.Context, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return command(d, schema_ref.TableTypes)
}

func (s *server) DoGetTableTypes(context.Context) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return rowsOf(schema_ref.TableTypes, func(b *array.RecordBuilder) error {
		text(b, tableType)
		return nil
	})
}

func (s *server) GetFlightInfoPrimaryKeys(_ context.Context, _ flightsql.TableRef, d *flight.FlightDescriptor) (
	*flight.FlightInfo, error) {
	return command(d, schema_ref.PrimaryKeys)
}

func (s *server) DoGetPrimaryKeys(ctx context.Context, r flightsql.TableRef) (*arrow.Schema,
	<-chan flight.StreamChunk, error) {
	return rowsOf(schema_ref.PrimaryKeys, func(b *array.RecordBuilder) error {
		name := []string{r.Table}
		if r.DBSchema != nil && *r.DBSchema != "" {
			name = []string{*r.DBSchema, r.Table}
		}
		t, err := s.tables.find(ctx, name)
		if err != nil {
			return err
		}
		open, err := t.open(ctx)
		if err != nil {
			return err
		}
		defer open.Close()
		for i, column := range open.PrimaryKey() {
			text(b, catalogueName, t.schema, t.name, column)
			b.Field(4).(*array.Int32Builder).Append(int32(i + 1))
			b.Field(5).AppendNull()
		}
		return nil
	})
}

// No format has foreign keys.

func (s *server) GetFlightInfoImportedKeys(_ context.Context, _ flightsql.TableRef, d *flight.FlightDescriptor) (
	*flight.FlightInfo, error) {
	return command(d, schema_ref.ImportedKeys)
}

func (s *server) DoGetImportedKeys(context.Context, flightsql.TableRef) (*arrow.Schema, <-chan flight.StreamChunk,
	error) {
	return rowsOf(schema_ref.ImportedKeys, nil)
}

func (s *server) GetFlightInfoExportedKeys(_ context.Context, _ flightsql.TableRef, d *flight.FlightDescriptor) (
	*flight.FlightInfo, error) {
	return command(d, schema_ref.ExportedKeys)
}

func (s *server) DoGetExportedKeys(context.Context, flightsql.TableRef) (*arrow.Schema, <-chan flight.StreamChunk,
	error) {
	return rowsOf(schema_ref.ExportedKeys, nil)
}

func (s *server) GetFlightInfoCrossReference(_ context.Context, _ flightsql.CrossTableRef, d *flight.FlightDescriptor) (
	*flight.FlightInfo, error) {
	return command(d, schema_ref.CrossReference)
}

func (s *server) DoGetCrossReference(context.Context, flightsql.CrossTableRef) (*arrow.Schema,
	<-chan flight.StreamChunk, error) {
	return rowsOf(schema_ref.CrossReference, nil)
}

func (s *server) GetFlightInfoXdbcTypeInfo(_ context.Context, _ flightsql.GetXdbcTypeInfo, d *flight.FlightDescriptor) (
	*flight.FlightInfo, error) {
	return command(d, schema_ref.XdbcTypeInfo)
}

func (s *server) DoGetXdbcTypeInfo(context.Context, flightsql.GetXdbcTypeInfo) (*arrow.Schema,
	<-chan flight.StreamChunk, error) {
	return rowsOf(schema_ref.XdbcTypeInfo, nil)
}

// matching returns the tables that match patterns of LIKE; nil matches everything.
func (s *server) matching(ctx context.Context, catalogue, schema, name *string) (out []table, err error) {
	if catalogue != nil && *catalogue != "" && *catalogue != catalogueName {
		return nil, nil
	}
	all, err := s.tables.all(ctx)
	inSchema, called := like(schema), like(name)
	for _, t := range all {
		if inSchema(t.schema) && called(t.name) {
			out = append(out, t)
		}
	}
	return out, err
}

// like returns a test for a pattern in which % stands for any text, _ for any letter, and \ quotes both.
func like(pattern *string) func(string) bool {
	if pattern == nil || *pattern == "%" {
		return func(string) bool { return true }
	}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	quoted := false
	for _, r := range *pattern {
		switch {
		case !quoted && r == '\\':
			quoted = true
			continue
		case !quoted && r == '%':
			b.WriteString(".*")
		case !quoted && r == '_':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
		quoted = false
	}
	re, err := regexp.Compile(b.String() + `\z`)
	if err != nil {
		return func(string) bool { return false }
	}
	return re.MatchString
}
