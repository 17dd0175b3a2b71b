import * as base from '@jupyter-widgets/base'
import { ManagerBase } from '@jupyter-widgets/base-manager'
import * as controls from '@jupyter-widgets/controls'
import { Widget } from '@lumino/widgets'
import { inlineHtml } from './html'
import type { Move } from './protocol'
import { styleWidgets } from './widgetLook'
import { outputClasses } from './widgetOutput'
import { type Closed, type Model, models as modelsOf, type Show, type Shown } from './widgetState'

// A bundle of its own, loaded by main.ts when a widget is shown: the views of Jupyter's own widgets, whose messages to their code go to the page.

type Classes = Record<string, unknown>
type Send = (move: Move) => void
interface Callbacks {
  iopub?: { status?: (message: unknown) => void }
}

const idle = { content: { execution_state: 'idle' } }

/** What stands in the place of a widget that cannot be shown, with a line that says why. */
class StrangeModel extends base.DOMWidgetModel {
  override defaults() {
    return { ...super.defaults(), strange: '' }
  }
}

class StrangeView extends base.DOMWidgetView {
  override render() {
    this.el.classList.add('cove-strange')
    this.el.textContent = String(this.model.get('strange') ?? '')
  }
}

class HtmlView extends controls.HTMLView {
  override update() {
    inlineHtml(this.content, String(this.model.get('value') ?? ''))
  }
}

class HtmlMathView extends controls.HTMLMathView {
  override update() {
    inlineHtml(this.content, String(this.model.get('value') ?? ''))
  }
}

/** The end of a comm at this side. */
class Comm {
  readonly target_name = 'jupyter.widget'
  private heard: ((message: unknown) => void) | null = null
  constructor(
    readonly comm_id: string,
    private readonly manager: Manager,
  ) {}
  on_msg(call: (message: unknown) => void) {
    this.heard = call
  }
  on_close() {}
  open() {
    return ''
  }
  close() {
    return ''
  }
  send(data: unknown, callbacks?: Callbacks) {
    return this.manager.send(this.comm_id, data, callbacks)
  }
  hear(state: unknown) {
    this.heard?.({ content: { data: { method: 'update', state } } })
  }
}

class Manager extends ManagerBase {
  private readonly classes: Record<string, Classes>
  private readonly waiting = new Map<number, Callbacks | undefined>()
  /** Of what was sent and has not run yet: the number of the last message, by widget and part of its state. */
  private readonly sent = new Map<string, number>()
  private count = 0
  private quiet = false
  private readonly fixed: boolean

  constructor(
    private readonly shown: Shown,
    show: Show,
    private readonly tell: Send,
  ) {
    super()
    this.fixed = shown.fixed
    this.classes = {
      '@jupyter-widgets/base': base as Classes,
      '@jupyter-widgets/controls': { ...controls, HTMLView: HtmlView, HTMLMathView: HtmlMathView } as Classes,
      '@jupyter-widgets/output': outputClasses(show) as Classes,
    }
  }

  protected override async loadClass(name: string, module: string) {
    const found = this.classes[module]?.[name]
    if (!found) throw new Error(`${module} ${name}`)
    return found as never
  }
  protected override async loadModelClass(name: string, module: string) {
    return (this.classes[module]?.[name] ?? StrangeModel) as never
  }
  protected override async loadViewClass(name: string, module: string) {
    return (this.classes[module]?.[name] ?? StrangeView) as never
  }
  /** A widget that nobody has told of does not take those with it that it is part of. */
  override async get_model(id: string) {
    if (!this.has_model(id)) await this.replace(id, this.shown.texts.gone)
    return await super.get_model(id)
  }
  override inline_sanitize(html: string) {
    const box = document.createElement('span')
    inlineHtml(box, html)
    return box.innerHTML
  }
  protected override async _create_comm() {
    return Promise.reject(new Error('Widgets are made by code alone.'))
  }
  protected override async _get_comm_info() {
    return {}
  }

  /** Sends a message to a widget's code, and reports when that has run. */
  send(widget: string, data: unknown, callbacks?: Callbacks) {
    const { method, state, content } = data as { method?: unknown; state?: unknown; content?: unknown }
    const n = ++this.count
    this.waiting.set(n, callbacks)
    if (this.quiet) {
      queueMicrotask(() => this.done(n))
      return String(n)
    }
    for (const key of Object.keys(state ?? {})) this.sent.set(`${widget} ${key}`, n)
    this.tell(method === 'update' ? { n, widget, state } : { n, widget, content })
    return String(n)
  }
  done(n: number) {
    const callbacks = this.waiting.get(n)
    this.waiting.delete(n)
    for (const [key, last] of this.sent) if (last === n) this.sent.delete(key)
    callbacks?.iopub?.status?.(idle)
  }

  /**
   * Takes new states in: makes widgets that are not here, and changes others, but for what somebody changes at this moment. What links make of it goes to their code,
   * unless another frame sees to that.
   */
  async take(models: Record<string, Model>, closed: Closed = [], quiet = false) {
    const entries = Object.entries(models)
    const made = entries.filter(([id]) => !this.has_model(id))
    const known = entries.filter(([id]) => this.has_model(id))
    await Promise.all(made.map(([id, model]) => this.make(id, model)))
    for (const [id, model] of known) {
      const there = await this.get_model(id)
      const state: Record<string, unknown> = { ...stateOf(model, this.fixed) }
      const read = there.constructor as unknown as typeof base.WidgetModel
      const now = (await read._deserialize_state(state as never, this)) as Record<string, unknown>
      const typed = (there as unknown as { _msg_buffer: Record<string, unknown> | null })._msg_buffer
      for (const key of Object.keys(now))
        if (typed?.[key] !== undefined || this.sent.has(`${id} ${key}`)) delete now[key]
      this.quiet = quiet
      try {
        there.set_state(now as never)
      } finally {
        this.quiet = false
      }
    }
    for (const id of closed) if (this.has_model(id)) await (await this.get_model(id)).close(true)
  }

  private make(id: string, model: Model) {
    if (model.too_large) return this.replace(id, this.shown.texts.large)
    if (model.model_name === 'FileUploadModel') return this.replace(id, this.shown.texts.upload) // its bytes would have no way
    if (model.model_name === 'PasswordModel') return this.replace(id, this.shown.texts.password) // what is typed would be recorded
    if (!this.classes[model.model_module]?.[model.model_name])
      return this.replace(id, this.shown.texts.strange.replace('{module}', model.model_module.slice(0, 100)))
    const { model_name, model_module, model_module_version } = model
    const options = { model_id: id, model_name, model_module, model_module_version }
    const comm = this.fixed ? {} : { comm: new Comm(id, this) }
    return this.new_model({ ...options, ...comm } as never, stateOf(model, this.fixed) as never)
  }

  /** Has a line stand in the place of a widget. */
  private replace(id: string, strange: string) {
    const names = { model_name: 'StrangeModel', model_module: 'cove', model_module_version: '' }
    const state = {
      _model_name: 'StrangeModel',
      _model_module: 'cove',
      _view_name: 'StrangeView',
      _view_module: 'cove',
    }
    return this.new_model({ model_id: id, ...names } as never, { ...state, strange } as never)
  }
}

/** The state of a widget, with its binary parts in their places. */
function stateOf(model: Model, fixed: boolean): Record<string, unknown> {
  const state = structuredClone(model.state)
  const parts = model.buffers.map((b) => new DataView(Uint8Array.from(atob(b.data), (c) => c.charCodeAt(0)).buffer))
  const paths = model.buffers.map((b) => b.path)
  base.put_buffers(state as never, paths as never, parts)
  if (fixed && 'disabled' in state) state.disabled = true
  return state
}

async function draw(root: HTMLElement, shown: Shown, theme: 'light' | 'dark', show: Show, tell: Send) {
  styleWidgets(theme)
  root.classList.add('cove-widgets')
  const manager = new Manager(shown, (box, item) => show(box, item, view), tell)
  async function view(box: HTMLElement, id: string) {
    if (!manager.has_model(id)) {
      box.textContent = shown.texts.gone
      return
    }
    const made = await manager.create_view((await manager.get_model(id)) as never)
    Widget.attach(made.luminoWidget, box)
  }
  await manager.take(shown.models)
  await view(root, shown.view)
  // One thing after the other: a state that comes late must not be older.
  let last: Promise<unknown> = Promise.resolve()
  const then = (act: () => unknown) => {
    last = last.then(act).catch((e) => console.warn(e))
  }
  return {
    take: (models: unknown, closed: Closed, quiet: boolean) =>
      then(() => manager.take(modelsOf(models), closed, quiet)),
    done: (n: number) => then(() => manager.done(n)),
  }
}

;(window as unknown as { coveWidgets: typeof draw }).coveWidgets = draw
