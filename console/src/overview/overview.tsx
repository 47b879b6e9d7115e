import type { JSX } from 'preact';
import { FleetMap } from './fleet-map.tsx';
import { KeyFigures } from './key-figures.tsx';
import { LadderPanel } from './ladder-panel.tsx';
import { QueueChart } from './queue-chart.tsx';
import { SignalsPanel } from './signals-panel.tsx';

export function Overview(): JSX.Element {
  return (
    <>
      <h1>Overview</h1>
      <KeyFigures />
      <div class="panels">
        <div class="column">
          <FleetMap />
        </div>
        <div class="column">
          <SignalsPanel />
          <QueueChart />
          <LadderPanel />
        </div>
      </div>
    </>
  );
}
