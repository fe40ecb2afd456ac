package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/coder/websocket"
)

const (
	protocol = "graphql-transport-ws"
	// In bytes; far more than any one event has.
	largestMessage = 16 << 20
	pingEvery      = 15 * time.Second
)

// Broken is a connection that couldn't be made or ended before its subscription did.
type Broken struct {
	// The websocket's close code, -1 where it had none.
	Code   int
	Reason string
	// What was answered instead of a websocket, 0 where nothing was.
	Status int
}

func (b *Broken) Error() string {
	if b.Code < 0 {
		return b.Reason
	}
	return fmt.Sprintf("the server ended the stream: %s (%d)", b.Reason, b.Code)
}

// Final tells that connecting again is of no use: the server said why it doesn't want to.
func (b *Broken) Final() bool {
	return (b.Code >= 4400 && b.Code < 4500) || (b.Status >= 400 && b.Status < 500)
}

type message struct {
	Type    string          `json:"type"`
	ID      string          `json:"id,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

type subscription struct {
	results any
	forward graphql.ForwardDataFunction
}

// socket is a websocket that speaks graphql-transport-ws. It is what generated functions want of a
// graphql.WebSocketClient; the library's own knows neither pings nor the message error, and
// panics when it is closed after a subscription was completed.
type socket struct {
	endpoint *url.URL
	token    string
	conn     *websocket.Conn
	broken   chan error

	mutex         sync.Mutex
	subscriptions map[string]subscription
	last          int
}

var _ graphql.WebSocketClient = (*socket)(nil)

func newSocket(endpoint *url.URL, token string) *socket {
	address := *endpoint
	address.Scheme = strings.Replace(endpoint.Scheme, "http", "ws", 1)
	return &socket{
		endpoint:      &address,
		token:         token,
		broken:        make(chan error, 1),
		subscriptions: map[string]subscription{},
	}
}

// Start connects and waits until the server has let us in.
func (s *socket) Start(ctx context.Context) (chan error, error) {
	opening, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	options := &websocket.DialOptions{Subprotocols: []string{protocol}, HTTPHeader: http.Header{}}
	params := map[string]string{}
	if s.token != "" {
		params["authorization"] = "Bearer " + s.token
		options.HTTPHeader.Set("Authorization", params["authorization"])
	}
	conn, response, err := websocket.Dial(opening, s.endpoint.String(), options)
	if err != nil {
		broken := brokenBy(err)
		if response != nil {
			broken.Status = response.StatusCode
		}
		return nil, broken
	}
	conn.SetReadLimit(largestMessage)
	s.conn = conn
	if err := s.open(opening, params); err != nil {
		conn.CloseNow()
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	go s.keepAlive(running)
	go func() {
		defer stop()
		s.listen(running)
	}()
	return s.broken, nil
}

func (s *socket) open(ctx context.Context, params map[string]string) error {
	if err := s.send(ctx, "connection_init", "", params); err != nil {
		return err
	}
	for {
		received, err := s.receive(ctx)
		if err != nil {
			return err
		}
		switch received.Type {
		case "connection_ack":
			return nil
		case "ping":
			if err := s.send(ctx, "pong", "", nil); err != nil {
				return err
			}
		}
	}
}

// keepAlive ends the connection when the other end doesn't answer any more.
func (s *socket) keepAlive(ctx context.Context) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			answered, cancel := context.WithTimeout(ctx, pingEvery)
			err := s.conn.Ping(answered)
			cancel()
			if err != nil {
				s.conn.CloseNow()
				return
			}
		}
	}
}

// listen is the only one that sends to and closes the channels of subscriptions.
func (s *socket) listen(ctx context.Context) {
	// First, since a channel that is closed makes its reader look whether anything broke.
	s.broken <- s.relay(ctx)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for id, ended := range s.subscriptions {
		reflect.ValueOf(ended.results).Close()
		delete(s.subscriptions, id)
	}
}

func (s *socket) relay(ctx context.Context) error {
	for {
		received, err := s.receive(ctx)
		if err != nil {
			return err
		}
		s.mutex.Lock()
		known, ok := s.subscriptions[received.ID]
		s.mutex.Unlock()
		switch {
		case received.Type == "ping":
			err = s.send(ctx, "pong", "", nil)
		case !ok:
		case received.Type == "next":
			err = known.forward(known.results, received.Payload)
		case received.Type == "error":
			err = known.forward(known.results, []byte(`{"errors":`+string(received.Payload)+`}`))
			s.end(received.ID)
		case received.Type == "complete":
			s.end(received.ID)
		}
		if err != nil {
			return err
		}
	}
}

func (s *socket) end(id string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	reflect.ValueOf(s.subscriptions[id].results).Close()
	delete(s.subscriptions, id)
}

// Subscribe asks for a subscription; forward puts what comes into results, which is closed at the end.
func (s *socket) Subscribe(
	request *graphql.Request,
	results any,
	forward graphql.ForwardDataFunction,
) (string, error) {
	s.mutex.Lock()
	s.last++
	id := strconv.Itoa(s.last)
	s.subscriptions[id] = subscription{results, forward}
	s.mutex.Unlock()
	return id, s.send(context.Background(), "subscribe", id, request)
}

// Unsubscribe tells the server to stop. What is on its way still has to be read.
func (s *socket) Unsubscribe(id string) error {
	return s.send(context.Background(), "complete", id, nil)
}

// Close ends the connection and all that runs on it. Results that nobody has read are dropped.
func (s *socket) Close() error {
	s.mutex.Lock()
	for _, open := range s.subscriptions {
		go drop(reflect.ValueOf(open.results))
	}
	s.mutex.Unlock()
	return s.conn.Close(websocket.StatusNormalClosure, "")
}

func drop(results reflect.Value) {
	for {
		if _, open := results.Recv(); !open {
			return
		}
	}
}

func (s *socket) send(ctx context.Context, kind, id string, payload any) error {
	sent := message{Type: kind, ID: id}
	if payload != nil {
		encoded, err := json.Marshal(payload)
		if err != nil {
			return err
		}
		sent.Payload = encoded
	}
	encoded, err := json.Marshal(sent)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.conn.Write(ctx, websocket.MessageText, encoded); err != nil {
		return brokenBy(err)
	}
	return nil
}

func (s *socket) receive(ctx context.Context) (message, error) {
	var received message
	_, encoded, err := s.conn.Read(ctx)
	if err != nil {
		return received, brokenBy(err)
	}
	return received, json.Unmarshal(encoded, &received)
}

func brokenBy(err error) *Broken {
	if closed, ok := errors.AsType[websocket.CloseError](err); ok {
		return &Broken{Code: int(closed.Code), Reason: closed.Reason}
	}
	return &Broken{Code: -1, Reason: err.Error()}
}
