export interface Colours {
  ground: string
  text: string
  muted: string
  line: string
  series: string[]
}

// The same as in tokens.css, which cannot be read from here.
export const colours: Record<'light' | 'dark', Colours> = {
  light: {
    ground: '#ffffff',
    text: '#1f1e1b',
    muted: '#5f5b54',
    line: '#e4e0d9',
    series: ['#0f6b62', '#b8690f', '#4c6fb1', '#b5485d', '#6b7a2e', '#8a5fa8'],
  },
  dark: {
    ground: '#1e1d1a',
    text: '#ece9e3',
    muted: '#a8a298',
    line: '#34322d',
    series: ['#5cc4b5', '#e8a35c', '#8fa9dd', '#e38a9c', '#b5c46e', '#c3a0dc'],
  },
}

export const sans =
  'ui-sans-serif, system-ui, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif'
