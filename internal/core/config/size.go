package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes. It is read from "512MiB", "2G", "1.5 GiB" or "1048576"; K, M, G and T are powers of 1024
// with or without "iB" or "B", as people mean them when they speak of memory.
type Size int64

// UnmarshalText reads a size as people write it.
func (s *Size) UnmarshalText(text []byte) error {
	in := strings.TrimSpace(string(text))
	digits := strings.TrimRightFunc(in, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	unit := strings.ToLower(strings.TrimSpace(in[len(digits):]))
	factor, ok := sizeUnit(unit)
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || n < 0 || n*factor >= math.MaxInt64 {
		return fmt.Errorf("%q is not a size; write it like 512MiB or 2G", in)
	}
	*s = Size(n * factor)
	return nil
}

func sizeUnit(unit string) (float64, bool) {
	unit = strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i")
	if unit == "" {
		return 1, true
	}
	at := strings.Index("kmgt", unit)
	if at < 0 || len(unit) != 1 {
		return 0, false
	}
	return math.Pow(1024, float64(at+1)), true
}

// MarshalText writes the size as String does.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String is the size in the largest unit that divides it, e.g. "2GiB"; UnmarshalText reads it back unchanged.
func (s Size) String() string {
	units := []struct {
		name   string
		factor Size
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}
	for _, u := range units {
		if s != 0 && s%u.factor == 0 {
			return strconv.FormatInt(int64(s/u.factor), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// Duration is a time span written as "90s", "5m", "1h30m" or "3d"; a bare number counts seconds.
type Duration time.Duration

// UnmarshalText reads a duration as people write it.
func (d *Duration) UnmarshalText(text []byte) error {
	in := strings.TrimSpace(string(text))
	if n, err := strconv.ParseFloat(in, 64); err == nil && n >= 0 && n < 1e9 {
		*d = Duration(n * float64(time.Second))
		return nil
	}
	if days, ok := strings.CutSuffix(in, "d"); ok {
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 && n < 36500 {
			*d = Duration(n * float64(24*time.Hour))
			return nil
		}
	}
	v, err := time.ParseDuration(in)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration; write it like 60s, 5m or 3d", in)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes the duration as String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String is the duration without trailing zero units, e.g. "5m" or "3d".
func (d Duration) String() string {
	if day := Duration(24 * time.Hour); d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
