package kernel

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
)

// MIMEWidget is the type of a view of a widget: an object with its model_id. Which state the widget is in, events Widgets tell.
const MIMEWidget = "application/vnd.jupyter.widget-view+json"

// Bounds of what a kernel may say about widgets; widgets.py keeps to smaller ones.
const (
	mostModels    = 1000
	longestWidget = 128 // bytes of an id
)

// Widgets tells in which state widgets are, before a view of them is shown and when they have changed. It comes only with Request.Widgets.
type Widgets struct {
	Models map[string]any // by id; each is a JSON object in the form of notebooks: model_name, model_module, model_module_version, state and buffers
	Closed []string       // ids of those that are no more
}

func (Widgets) event() {}

// WidgetStates are the states of a kernel's widgets.
type WidgetStates struct {
	Models map[string]any // as in Widgets
	More   int64          // how many there are beside them
}

// widgets emits what a message of some size tells of widgets, unless there is too much.
func (x *execution) widgets(s spoken, size int64) error {
	if x.shown += size; x.shown > x.limit {
		x.dropped += size
		return nil
	}
	models, err := modelsOf(s.Models)
	if err != nil {
		return err
	}
	closed, err := texts(s.Closed, mostModels)
	if err != nil {
		return err
	}
	closed = slices.DeleteFunc(closed, func(id string) bool { return len(id) > longestWidget })
	if x.req.Widgets && len(models)+len(closed) > 0 {
		x.emit(Widgets{Models: models, Closed: closed})
	}
	return nil
}

// modelsOf keeps those states that are objects.
func modelsOf(raw json.RawMessage) (map[string]any, error) {
	models, err := members(raw)
	maps.DeleteFunc(models, func(id string, state any) bool {
		text, ok := state.(json.RawMessage)
		return !ok || text[0] != '{' || len(id) > longestWidget
	})
	return models, err
}

// Widgets returns the states of all widgets of the interpreter, as far as there is room. It waits until the kernel is idle.
func (k *Kernel) Widgets(ctx context.Context) (WidgetStates, error) {
	var said struct {
		Models json.RawMessage
		More   int64
	}
	if err := k.ask(ctx, map[string]any{"type": "widgets"}, "widgets_reply", &said); err != nil {
		return WidgetStates{}, err
	}
	models, err := modelsOf(said.Models)
	return WidgetStates{Models: models, More: max(said.More, 0)}, err
}
