package change

import (
	"context"

	"stoa/format/carbon/internal/status"
)

// readStatus reads tablestatus if readers do: what they refuse is refused in their words.
func readStatus(dir string) (status.StatusFile, error) {
	if _, err := ReadTableSchema(dir); err != nil {
		return nil, err
	}
	return status.ReadEntries(status.StatusPath(dir))
}

// changeStatus changes tablestatus if readers accept it; see status.ChangeStatus.
func changeStatus(ctx context.Context, dir string, change func(s *status.StatusFile) error) error {
	accept := func() error {
		_, err := ReadTableSchema(dir)
		return err
	}
	return status.ChangeStatus(ctx, dir, accept, change)
}
