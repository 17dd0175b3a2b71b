import baseCss from '@jupyter-widgets/base/css/index.css?inline'
import variables from '@jupyter-widgets/controls/css/labvariables.css?inline'
import controlsCss from '@jupyter-widgets/controls/css/widgets-base.css?inline'
import luminoCss from '@lumino/widgets/style/index.css?inline'
import { colours, sans } from './theme'

// The looks of Jupyter's widgets, in the page's colours.

/** Signs in the place of a font of signs, which is not loaded. */
const signs: Record<string, string> = {
  play: '▶',
  pause: '‖',
  stop: '■',
  repeat: '↻',
  retweet: '↻',
  refresh: '↻',
  sync: '↻',
  undo: '↺',
  check: '✓',
  times: '×',
  close: '×',
  plus: '+',
  minus: '−',
  'arrow-left': '←',
  'arrow-right': '→',
  'arrow-up': '↑',
  'arrow-down': '↓',
  'caret-left': '◂',
  'caret-right': '▸',
  'caret-up': '▴',
  'caret-down': '▾',
  upload: '⤒',
  download: '⤓',
  save: '⤓',
  search: '⌕',
  trash: '⌫',
  edit: '✎',
  pencil: '✎',
  info: 'i',
  'info-circle': 'i',
  warning: '!',
  'exclamation-triangle': '!',
  home: '⌂',
  star: '★',
  heart: '♥',
  cog: '⚙',
  'step-forward': '»',
  'step-backward': '«',
}

export function styleWidgets(theme: 'light' | 'dark') {
  const c = colours[theme]
  const [accent] = c.series
  const over = theme === 'dark' ? '#1e1d1a' : '#ffffff'
  const raised = theme === 'dark' ? '#2a2925' : '#f4f2ee'
  const own = `
:root {
  --jp-ui-font-family: ${sans}; --jp-ui-font-size1: 14px; --jp-content-font-size1: 14px; --jp-widgets-font-size: 14px; --jp-code-font-family: ui-monospace, monospace;
  --jp-ui-font-color0: ${c.text}; --jp-ui-font-color1: ${c.text}; --jp-ui-font-color2: ${c.muted}; --jp-ui-font-color3: ${c.muted};
  --jp-content-font-color0: ${c.text}; --jp-content-font-color1: ${c.text}; --jp-content-font-color2: ${c.muted}; --jp-content-font-color3: ${c.muted};
  --jp-layout-color0: ${c.ground}; --jp-layout-color1: ${c.ground}; --jp-layout-color2: ${raised}; --jp-layout-color3: ${c.line};
  --jp-border-color0: ${c.line}; --jp-border-color1: ${c.line}; --jp-border-color2: ${c.line}; --jp-border-color3: ${c.line};
  --jp-brand-color0: ${accent}; --jp-brand-color1: ${accent}; --jp-brand-color2: ${accent}; --jp-brand-color3: ${accent};
  --jp-ui-inverse-font-color0: ${over}; --jp-ui-inverse-font-color1: ${over}; --jp-inverse-ui-font-color0: ${over}; --jp-inverse-ui-font-color1: ${over};
  --jp-success-color0: ${c.series[4]}; --jp-success-color1: ${c.series[4]}; --jp-info-color0: ${c.series[2]}; --jp-info-color1: ${c.series[2]};
  --jp-warn-color0: ${c.series[1]}; --jp-warn-color1: ${c.series[1]}; --jp-error-color0: ${c.series[3]}; --jp-error-color1: ${c.series[3]};
  --jp-widgets-input-background-color: ${c.ground}; --jp-widgets-input-color: ${c.text}; --jp-widgets-input-border-color: ${c.muted};
  --jp-widgets-color: ${c.text}; --jp-widgets-label-color: ${c.text}; --jp-widgets-readout-color: ${c.text};
}
body { background: ${c.ground}; color: ${c.text}; }
.cove-widgets { padding: 6px; box-sizing: border-box; font: 14px/20px ${sans}; }
.cove-widgets :focus-visible { outline: 2px solid ${accent}; outline-offset: 2px; }
.cove-widgets pre { margin: 4px 0; font: 13px/19px ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
.cove-widgets .cove-bad { color: ${c.series[3]}; }
.cove-widgets img { max-width: 100%; }
.jupyter-widgets-disconnected::before { content: none !important; }
.cove-output { overflow-x: auto; }
.cove-strange { color: ${c.muted}; padding: 4px 0; }
.cove-widgets .widget-readout[contenteditable], .cove-widgets .widget-readout { color: ${c.text}; }
.cove-widgets .jupyter-button, .cove-widgets .widget-toggle-button { border-radius: 6px; }
.cove-widgets .jupyter-button.mod-primary, .cove-widgets .noUi-connect { background: ${accent}; }
.cove-widgets select { appearance: auto; background-image: none !important; }
.cove-widgets input { accent-color: ${accent}; }
.cove-widgets .noUi-target { background: ${c.muted}; }
.cove-widgets select option { background: ${c.ground}; color: ${c.text}; }
.fa { font-style: normal; font-family: ${sans}; margin-inline-end: 4px; }
.fa::before { content: '•'; }
${Object.entries(signs)
  .map(([name, sign]) => `.fa-${name}::before { content: '${sign}'; }`)
  .join('\n')}
@media (max-width: 480px) { .cove-widgets .widget-inline-hbox { max-width: 100%; } }
`
  const style = document.createElement('style')
  style.textContent = [variables, luminoCss, baseCss, controlsCss, own].join('\n')
  document.head.append(style)
}
