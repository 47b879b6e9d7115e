import { render } from 'preact';
import { App } from './app.tsx';
import './styles.css';
import { applyThemeChoice, readThemeChoice } from './theme.ts';

applyThemeChoice(readThemeChoice());
const root = document.getElementById('console');
if (root !== null) render(<App />, root);
