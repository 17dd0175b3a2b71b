package gemini

import (
	"encoding/json"
	"strings"
)

// deepest bounds the objects within objects of a schema.
const deepest = 64

// schema reads a Schema of Google's, a subset of OpenAPI's, as JSON Schema: types are in small letters there, and what may be null says so among its types.
func (o object) schema(name string) json.RawMessage {
	if o.err != nil {
		return nil
	}
	text, err := json.Marshal(jsonSchema(o.object(name), 0))
	if err != nil {
		o.fail(err)
	}
	return text
}

func jsonSchema(o object, depth int) map[string]any {
	out := map[string]any{}
	if depth > deepest {
		o.fail(invalid("The schema at '%s' is nested too deeply.", short(o.at)))
	}
	if o.err != nil {
		return out
	}
	for name, raw := range o.fields {
		switch name {
		case "type":
			if kind := strings.ToLower(o.text(name)); kind != "" && kind != "type_unspecified" {
				out[name] = kind
			}
		case "nullable", "propertyOrdering", "example": // the first is below
		case "items", "additionalProperties":
			if strings.HasPrefix(strings.TrimSpace(string(raw)), "{") {
				out[name] = jsonSchema(o.object(name), depth+1)
			} else {
				out[name] = raw
			}
		case "properties", "defs", "$defs":
			out[name] = schemas(o, name, depth)
		case "anyOf", "oneOf", "allOf", "prefixItems":
			list := []any{}
			for _, inner := range o.objects(name, mostFunctions) {
				list = append(list, jsonSchema(inner, depth+1))
			}
			out[name] = list
		case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties":
			if n, ok := o.integer(name); ok {
				out[name] = n
			}
		case "format":
			if f := o.text(name); f != "enum" {
				out[name] = f
			}
		default:
			out[name] = raw
		}
	}
	if kind, ok := out["type"].(string); ok && o.yes("nullable") {
		out["type"] = []string{kind, "null"}
	}
	return out
}

// schemas are those of an object's properties, whose names are the client's.
func schemas(o object, name string, depth int) map[string]any {
	var raw map[string]json.RawMessage
	o.value(name, &raw, "an object")
	out := map[string]any{}
	for property, schema := range raw {
		out[property] = jsonSchema(newObject(o.reader, o.path(name)+"."+short(property), schema), depth+1)
	}
	return out
}
