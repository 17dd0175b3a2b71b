import { DOMWidgetModel, DOMWidgetView } from '@jupyter-widgets/base'
import type { Show } from './widgetState'

// The Output widget, whose outputs the interpreter keeps.

export function outputClasses(show: Show) {
  class OutputModel extends DOMWidgetModel {
    override defaults() {
      return {
        ...super.defaults(),
        _model_name: 'OutputModel',
        _view_name: 'OutputView',
        _model_module: '@jupyter-widgets/output',
        _view_module: '@jupyter-widgets/output',
        msg_id: '',
        outputs: [],
      }
    }
  }
  class OutputView extends DOMWidgetView {
    private drawn = 0
    override render() {
      super.render()
      this.el.classList.add('cove-output')
      this.listenTo(this.model, 'change:outputs', () => void this.draw())
      void this.draw()
    }
    /** What was there stays until what comes is whole: nothing jumps while a slider moves. */
    private async draw() {
      const mine = ++this.drawn
      const outputs: unknown = this.model.get('outputs')
      const boxes: HTMLElement[] = []
      for (const item of Array.isArray(outputs) ? outputs.slice(0, 1000) : []) {
        const box = document.createElement('div')
        boxes.push(box)
        if (item === null || typeof item !== 'object') continue
        // What is measured as it is drawn has to be in the page.
        const live = /plotly|widget-view/.test(Object.keys((item as { data?: object }).data ?? {}).join())
        if (live) this.el.append(box)
        await show(box, item as Record<string, unknown>).catch((e) => {
          box.textContent = String(e).slice(0, 300)
        })
        if (mine !== this.drawn) {
          for (const b of boxes) b.remove()
          return
        }
      }
      this.el.replaceChildren(...boxes)
    }
  }
  return { OutputModel, OutputView }
}
