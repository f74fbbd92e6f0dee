package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	segmentSuffix   = ".seg"
	badSuffix       = ".bad"
	temporarySuffix = ".tmp"
	carryName       = "carry"
)

func segmentName(number uint64) string { return fmt.Sprintf("%016x%s", number, segmentSuffix) }

// segmentNumber reads the number of a segment's name, whole or quarantined.
func segmentNumber(name, suffix string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	return n, err == nil && segmentName(n) == digits+segmentSuffix
}

func loopFolder(run string, loop int) string { return filepath.Join(run, strconv.Itoa(loop)) }

// loopFolders lists the loops of a run's folder, upwards.
func loopFolders(run string) ([]int, error) {
	entries, err := os.ReadDir(run)
	if err != nil {
		return nil, err
	}
	found := make(map[int]bool)
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err == nil && e.IsDir() && n >= 0 && n < LoopsMax && strconv.Itoa(n) == e.Name() {
			found[n] = true
		}
	}
	loops := make([]int, 0, len(found))
	for n := 0; len(loops) < len(found); n++ {
		if found[n] {
			loops = append(loops, n)
		}
	}
	return loops, nil
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func syncFolderOf(path string) error { return syncFolder(filepath.Dir(path)) }

// writeWhole puts a file in place so that either all of it is there, durably,
// or nothing is.
func writeWhole(path string, content []byte) error {
	temporary := path + temporarySuffix
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, removeGone(temporary))
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return syncFolderOf(path)
}

// removeGone removes a file that may be gone already.
func removeGone(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
