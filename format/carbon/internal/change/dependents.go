package change

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
)

// refuseDependents returns Unsupported if the table has dependents, such as views, but for those that a change keeps up
// to date. A change would make them stale without CarbonData noticing, and its queries would read wrong rows from them.
func refuseDependents(t layout.TableSchema, dir string) error {
	if t.Spatial() != nil {
		t.Properties = without(t.Properties, "spatial_index")
	}
	if list := t.Dependents(); len(list) > 0 {
		return fault.Unsupportedf(fault.Span{Object: filepath.Join(dir, "Metadata", "schema")}, "",
			"the table has %s, which CarbonData keeps up to date with its rows and stoa does not: change it with "+
				"CarbonData, or drop them there first (rows of a table with views or index tables can be changed "+
				"with Changer.DisableDependents)",
			strings.Join(list, " and "))
	}
	return nil
}

// checkIndependent is refuseDependents for the table at p, after checkReadable. Dependents that were disabled are no
// reason to refuse.
func checkIndependent(ctx context.Context, p format.TablePlace, except ...string) error {
	t, err := readableSchema(ctx, p, except...)
	if err == nil && p.Disabled {
		t.Properties = without(t.Properties, layout.ViewsProperty, layout.IndexTablesProperty)
	}
	if err != nil {
		return err
	}
	return refuseDependents(*t, p.Dir)
}

// checkColumns is checkDescribed for a change of columns. CarbonData reads streaming segments by the columns of the
// table, not by those of their files.
func checkColumns(ctx context.Context, p format.TablePlace) error {
	if err := checkDescribed(ctx, p); err != nil {
		return err
	}
	return checkNoStreams(p.Dir)
}

// checkDescribed is checkIndependent for a change of what secondary index tables have, too: columns, and the table's
// name.
func checkDescribed(ctx context.Context, p format.TablePlace) error {
	t, err := readableSchema(ctx, p)
	if err == nil && p.Disabled {
		t.Properties = without(t.Properties, layout.ViewsProperty)
	}
	if err != nil {
		return err
	}
	return refuseDependents(*t, p.Dir)
}

// checkAlone returns Unsupported if something outside of a table that is to be dropped depends on it: views and index
// tables, which would stay, and the views would be read again once another table has its name; or a main table of which
// it is an index. What lies within the table goes with it. Of a table with a damaged schema nothing is known.
func checkAlone(p format.TablePlace) error {
	t, err := ReadTableSchema(p.Dir)
	if err != nil {
		return nil
	}
	t.Properties = without(t.Properties, "indexexists", "spatial_index", "index_handler")
	if p.Disabled {
		t.Properties = without(t.Properties, layout.ViewsProperty, layout.IndexTablesProperty)
	}
	if list := t.Dependents(); len(list) > 0 {
		return fault.Unsupportedf(fault.Span{Object: filepath.Join(p.Dir, "Metadata", "schema")}, "",
			"the table has %s, which CarbonData drops with it and stoa does not: drop it with CarbonData (a table "+
				"with views or index tables can be dropped with Changer.DisableDependents)",
			strings.Join(list, " and "))
	}
	return nil
}

func readableSchema(ctx context.Context, p format.TablePlace, except ...string) (*layout.TableSchema, error) {
	if err := checkReadable(ctx, p, except...); err != nil {
		return nil, err
	}
	return ReadTableSchema(p.Dir)
}

// without returns the properties but those with these keys.
func without(props map[string]string, keys ...string) map[string]string {
	out := maps.Clone(props)
	maps.DeleteFunc(out, func(k, _ string) bool { return slices.Contains(keys, strings.ToLower(k)) })
	return out
}

// disableDependents marks the materialised views of a table as disabled, as CarbonData does when they are out of date:
// its queries then ignore them until they are refreshed. It returns the names of the views. Secondary index tables need
// no mark: CarbonData since 2.2 does not use them for segments that they lack, and its next load adds these; they are
// returned as format.IndexTables. Other dependents have their state in Hive's metastore and are Unsupported, as are
// views that the status file of the database does not have. With dry nothing is written.
func disableDependents(ctx context.Context, p format.TablePlace, dry bool) ([]string, error) {
	t, err := ReadTableSchema(p.Dir)
	if err != nil {
		return nil, err
	}
	plain := *t
	plain.Properties = without(t.Properties, layout.ViewsProperty, layout.IndexTablesProperty)
	if err := refuseDependents(plain, p.Dir); err != nil {
		return nil, err
	}
	var names []string
	if slices.Contains(t.Dependents(), format.IndexTables) {
		names = append(names, format.IndexTables)
	}
	views := map[string][]string{}
	for k, v := range t.Properties {
		if strings.EqualFold(k, layout.ViewsProperty) && v != "" {
			if err := json.Unmarshal([]byte(v), &views); err != nil {
				return nil, fault.Corruptf(fault.Span{Object: filepath.Join(p.Dir, "Metadata", "schema")}, k, "%v", err)
			}
		}
	}
	at := len(names)
	for db, list := range views {
		for _, v := range list {
			names = append(names, db+"."+v)
		}
	}
	slices.Sort(names[at:])
	if len(names) == at {
		return names, nil
	}
	system := filepath.Join(filepath.Dir(filepath.Clean(p.Dir)), "_system")
	if !dry {
		unlock, err := status.Lock(ctx, system, "mvstatus.lock", status.LockWait)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	return names, disableViews(filepath.Join(system, "mv_status"), names[at:], dry)
}

// disableViews disables views in a database's file of views.
func disableViews(file string, names []string, dry bool) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var list []map[string]any
	if err := json.Unmarshal(b, &list); err != nil {
		return fault.Corruptf(fault.Span{Object: file, Len: int64(len(b))}, "", "%v", err)
	}
	for _, name := range names {
		i := slices.IndexFunc(list, func(e map[string]any) bool {
			id, _ := e["identifier"].(map[string]any)
			return strings.EqualFold(fmt.Sprintf("%v.%v", id["databaseName"], id["tableName"]), name)
		})
		if i < 0 {
			return fault.Unsupportedf(fault.Span{Object: file}, "", "it does not have the view %s, which depends on "+
				"the table: disable or drop it with CarbonData", name)
		}
		list[i]["status"] = "DISABLED"
	}
	if b, err = json.Marshal(list); err != nil || dry {
		return err
	}
	return status.ReplaceFile(file, b)
}
