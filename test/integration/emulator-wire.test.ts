/** The emulated fleet over real sockets: its wire, its faults, its accounts. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type EmulatedFleet, type EmulatedNodeInput, startEmulatedFleet } from '../../src/emulator/index.ts';

const IMAGE: EmulatedNodeInput = {
  id: 'image-1',
  kind: 'image',
  model: 'sd',
  statedHardware: 'T4',
  trueHardware: 'A100',
};
const TEXT: EmulatedNodeInput = {
  id: 'text-1',
  kind: 'text',
  model: 'llm',
  statedHardware: 'H100',
  trueHardware: 'H100',
};

let fleet: EmulatedFleet | undefined;

afterEach(async () => {
  await fleet?.close();
  fleet = undefined;
});

async function start(nodes: EmulatedNodeInput[], speedup = 1_000): Promise<EmulatedFleet> {
  fleet = await startEmulatedFleet({ speedup, noiseSigma: 0, nodes });
  return fleet;
}

function post(url: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
}

const urlOf = (of: EmulatedFleet, index = 0): string => of.nodes[index]?.url ?? '';

const until = (holds: () => boolean): Promise<boolean> =>
  vi.waitUntil(holds, { timeout: 10_000, interval: 2 });

describe('an emulated image node', () => {
  it('answers images that say they are emulated, and accounts for the work', async () => {
    const running = await start([IMAGE]);
    const answer = await post(`${urlOf(running)}/v1/images/generations`, {
      model: 'sd',
      prompt: 'x',
      n: 2,
      steps: 60,
      size: '512x512',
    });
    const body = (await answer.json()) as { data: { b64_json: string }[]; emulated: { serviceMs: number } };
    expect(answer.headers.get('x-emulated')).toBe('1');
    expect(body.data).toHaveLength(2);
    expect(Buffer.from(body.data[0]?.b64_json ?? '', 'base64').toString('latin1')).toContain('emulated');
    expect(body.emulated.serviceMs).toBeCloseTo((620 + 526 * 4) / 1_000, 1);
    const truth = running.truth()[0];
    expect(truth).toMatchObject({
      emulated: true,
      received: 1,
      served: 1,
      statedHardware: 'T4',
      trueHardware: 'A100',
    });
    expect(truth?.recentRate).toBeCloseTo(1, 6);
  });

  it('states its hardware and emulation in the list of models', async () => {
    const running = await start([IMAGE]);
    const answer = await fetch(`${urlOf(running)}/v1/models`);
    expect(await answer.json()).toMatchObject({
      data: [{ id: 'sd', owned_by: 'emulated T4', emulated: true }],
    });
  });

  it('frees the slot at once when the client leaves', async () => {
    const running = await start([IMAGE], 0.1);
    const leave = new AbortController();
    const first = post(`${urlOf(running)}/v1/images/generations`, { model: 'sd', prompt: 'x' }, leave.signal);
    await until(() => running.truth()[0]?.running === 1);
    leave.abort();
    await expect(first).rejects.toThrow('aborted');
    await until(() => running.truth()[0]?.running === 0);
    expect(running.truth()[0]).toMatchObject({ aborted: 1, served: 0, ghosts: 0 });
  });

  it('works on as a ghost when it plays a server that cannot abort', async () => {
    const running = await start([{ ...IMAGE, abortFreesSlot: false }], 10);
    const leave = new AbortController();
    const first = post(`${urlOf(running)}/v1/images/generations`, { model: 'sd', prompt: 'x' }, leave.signal);
    await until(() => running.truth()[0]?.running === 1);
    leave.abort();
    await expect(first).rejects.toThrow('aborted');
    await until(() => running.truth()[0]?.ghosts === 1);
    expect(running.truth()[0]?.ghostWorkMs).toBeCloseTo(114.6, 3);
  });

  it('refuses what is no request', async () => {
    const running = await start([IMAGE]);
    const wrong = await post(`${urlOf(running)}/v1/images/generations`, { n: 1_000 });
    expect(wrong.status).toBe(400);
    expect(await wrong.json()).toMatchObject({ error: { type: 'invalid_request_error' } });
    const elsewhere = await post(`${urlOf(running)}/v1/chat/completions`, {});
    expect(elsewhere.status).toBe(404);
  });
});

describe('an emulated text node', () => {
  const messages = [{ role: 'user', content: 'hello there, node' }];

  it('streams tokens, a usage chunk when asked, and DONE', async () => {
    const running = await start([TEXT]);
    const answer = await post(`${urlOf(running)}/v1/chat/completions`, {
      model: 'llm',
      messages,
      max_tokens: 5,
      stream: true,
      stream_options: { include_usage: true },
    });
    const events = (await answer.text()).trim().split('\n\n');
    expect(events.at(-1)).toBe('data: [DONE]');
    const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice(6)));
    expect(chunks.filter((chunk) => chunk.choices[0]?.delta.content).length).toBe(5);
    expect(chunks.at(-1).usage).toEqual({ prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 });
  });

  it('answers whole when no stream is asked for', async () => {
    const running = await start([TEXT]);
    const answer = await post(`${urlOf(running)}/v1/chat/completions`, {
      model: 'llm',
      messages,
      max_tokens: 3,
    });
    expect(await answer.json()).toMatchObject({
      choices: [{ finish_reason: 'length' }],
      usage: { completion_tokens: 3 },
    });
    const completion = await post(`${urlOf(running)}/v1/completions`, {
      model: 'llm',
      prompt: 'x',
      max_tokens: 2,
    });
    expect(await completion.json()).toMatchObject({ object: 'text_completion', usage: { total_tokens: 3 } });
  });

  it('shows its load under the names of vLLM, and frees a sequence whose client leaves', async () => {
    const running = await start([TEXT], 1);
    const leave = new AbortController();
    const stream = post(
      `${urlOf(running)}/v1/chat/completions`,
      { model: 'llm', messages, max_tokens: 1_000, stream: true },
      leave.signal,
    );
    await stream;
    const metrics = await (await fetch(`${urlOf(running)}/metrics`)).text();
    expect(metrics).toMatch(/vllm:num_requests_running\{[^}]*\} 1/);
    leave.abort();
    await until(() => running.truth()[0]?.running === 0);
    expect(running.truth()[0]).toMatchObject({ aborted: 1, served: 0 });
  });
});

describe('faults of an emulated node', () => {
  const body = { model: 'sd', prompt: 'x' };
  const generate = (of: EmulatedFleet) => post(`${urlOf(of)}/v1/images/generations`, body);

  it('are switched over the control port', async () => {
    const running = await start([IMAGE]);
    const control = `${running.controlUrl}/nodes/image-1/faults`;
    expect((await post(control, { refuseStatus: 503, refuseRetryAfterS: 2 })).status).toBe(200);
    const refused = await generate(running);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2']);
    expect((await fetch(`${urlOf(running)}/health`)).status).toBe(200);
    expect((await post(control, { refuseStatus: 0 })).status).toBe(200);
    expect((await generate(running)).status).toBe(200);
    expect((await post(control, { nonsense: 1 })).status).toBe(400);
    expect((await post(`${running.controlUrl}/nodes/none/faults`, {})).status).toBe(404);
  });

  it('slow: work takes longer and the true rate falls', async () => {
    const running = await start([IMAGE]);
    await running.setFaults('image-1', { slowFactor: 2 });
    await generate(running);
    expect(running.truth()[0]?.recentRate).toBeCloseTo(0.5, 6);
  });

  it('fail: the stated share is answered 500', async () => {
    const running = await start([IMAGE]);
    await running.setFaults('image-1', { failRatio: 1 });
    expect((await generate(running)).status).toBe(500);
    expect(running.truth()[0]?.failed).toBe(1);
  });

  it('dead: the port is closed until it is revived', async () => {
    const running = await start([IMAGE]);
    await running.setFaults('image-1', { dead: true });
    await expect(generate(running)).rejects.toThrow('fetch failed');
    await running.setFaults('image-1', { dead: false });
    expect((await generate(running)).status).toBe(200);
  });

  it('hang: nothing comes and nothing is worked on', async () => {
    const running = await start([IMAGE]);
    await running.setFaults('image-1', { hang: true });
    const leave = new AbortController();
    const waiting = post(`${urlOf(running)}/v1/images/generations`, body, leave.signal);
    await until(() => running.truth()[0]?.received === 1);
    expect(running.truth()[0]?.running).toBe(0);
    leave.abort();
    await expect(waiting).rejects.toThrow('aborted');
  });

  it('garbage and truncate: no answer that could pass for a good one', async () => {
    const running = await start([IMAGE, TEXT]);
    await running.setFaults('image-1', { garbage: true });
    await expect((await generate(running)).json()).rejects.toThrow('JSON');
    await running.setFaults('image-1', { garbage: false, truncate: true });
    await expect(generate(running).then((answer) => answer.text())).rejects.toThrow('terminated');
    await running.setFaults('text-1', { truncate: true });
    const stream = await post(`${urlOf(running, 1)}/v1/completions`, {
      prompt: 'x',
      max_tokens: 3,
      stream: true,
    });
    expect(await stream.text()).not.toContain('[DONE]');
  });

  it('closed connections: each answer is the last one on its own', async () => {
    const running = await start([IMAGE]);
    expect((await generate(running)).headers.get('connection')).toBe('keep-alive');
    await running.setFaults('image-1', { closeConnections: true });
    expect((await generate(running)).headers.get('connection')).toBe('close');
  });

  it('memory use: the page of its host tells it', async () => {
    const running = await start([IMAGE]);
    await running.setFaults('image-1', { memoryUse: 0.75 });
    const page = await (await fetch(`${urlOf(running)}/device/metrics`)).text();
    expect(page).toMatch(/^DCGM_FI_DEV_FB_USED\{gpu="0",emulated="1"\} 61440$/m);
    expect(page).toMatch(/^DCGM_FI_DEV_FB_FREE\{gpu="0",emulated="1"\} 20480$/m);
  });

  it('stale metrics: readings stay as they were', async () => {
    const running = await start([TEXT], 1);
    await running.setFaults('text-1', { staleMetrics: true });
    const leave = new AbortController();
    await post(
      `${urlOf(running)}/v1/completions`,
      { prompt: 'x', max_tokens: 500, stream: true },
      leave.signal,
    );
    expect(running.truth()[0]?.running).toBe(1);
    expect(await (await fetch(`${urlOf(running)}/metrics`)).text()).toMatch(/running\{[^}]*\} 0/);
    leave.abort();
  });
});

it('a fleet tells the truth about every node at once', async () => {
  const running = await start([IMAGE, TEXT]);
  const truth = (await (await fetch(`${running.controlUrl}/truth`)).json()) as { id: string }[];
  expect(truth.map((node) => node.id)).toEqual(['image-1', 'text-1']);
});

it('a wrong specification starts nothing and names every problem', async () => {
  const twice = [IMAGE, IMAGE];
  await expect(startEmulatedFleet({ nodes: twice })).rejects.toThrow(/distinct/);
  const wrong = [{ ...IMAGE, trueSpeed: -1, kind: 'toaster' as 'image' }];
  await expect(startEmulatedFleet({ nodes: wrong })).rejects.toThrow(
    /kind[\s\S]*trueSpeed|trueSpeed[\s\S]*kind/,
  );
});
