package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Verify returns true if a delivery is genuine and, at now, at most tolerance old. body holds the bytes as received.
func Verify(body []byte, header, secret string, tolerance time.Duration, now time.Time) bool {
	var times, given []string
	for _, part := range strings.Split(header, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "t":
			times = append(times, value)
		case "v1":
			given = append(given, value)
		}
	}
	if len(times) != 1 {
		return false
	}
	at, err := strconv.ParseUint(times[0], 10, 48)
	age := now.Sub(time.Unix(int64(at), 0)).Abs()
	if err != nil || age > tolerance {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(times[0] + "."))
	mac.Write(body)
	expected := hex.EncodeToString(mac.Sum(nil))
	for _, value := range given {
		if hmac.Equal([]byte(expected), []byte(value)) {
			return true
		}
	}
	return false
}
