package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The events that were handled. In production: a table with a unique key, written in the transaction that ships the order.
var (
	handled = map[string]bool{}
	mutex   sync.Mutex
)

{verify}
type delivery struct {
	ID      string  `json:"id"`
	EventID *string `json:"event_id"` // a test delivery has no event
	Event   string  `json:"event"`
	Mode    string  `json:"mode"`
	Test    bool    `json:"test"`
	Data    struct {
		Charge struct {
			Code string `json:"code"`
		} `json:"charge"`
	} `json:"data"`
}

func hooks(w http.ResponseWriter, r *http.Request) {
	// The bytes as received, not parsed JSON.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	signature := r.Header.Get("X-Service-Signature")
	if err != nil || !Verify(body, signature, os.Getenv("WEBHOOK_SECRET"), 5*time.Minute, time.Now()) {
		http.Error(w, "invalid signature", http.StatusBadRequest)
		return
	}
	var got delivery
	if err := json.Unmarshal(body, &got); err != nil {
		http.Error(w, "invalid JSON", http.StatusBadRequest)
		return
	}
	event := got.ID
	if got.EventID != nil {
		event = *got.EventID
	}
	mode := os.Getenv("WEBHOOK_MODE")
	if mode == "" {
		mode = "test"
	}
	mutex.Lock()
	defer mutex.Unlock()
	if !handled[event] {
		if got.Event == "charge.paid" && got.Mode == mode && !got.Test {
			log.Println("ship the order of charge", got.Data.Charge.Code)
		}
		handled[event] = true
	}
	w.WriteHeader(http.StatusNoContent)
}

func main() {
	if os.Getenv("WEBHOOK_SECRET") == "" {
		log.Fatal("WEBHOOK_SECRET is not set")
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "3000"
	}
	http.HandleFunc("/hooks", hooks)
	log.Fatal(http.ListenAndServe("localhost:"+port, nil))
}
