import { describe, expect, test } from 'vitest';
import { addressRule, checkNodeUrl, checkNodeUrlResolved } from './node-url.ts';

describe('checkNodeUrl', () => {
  test.each([
    ['ftp://10.0.0.1', 'scheme-not-http'],
    ['file:///etc/passwd', 'scheme-not-http'],
    ['not a url', 'url-malformed'],
    ['http://', 'url-malformed'],
    [`http://${'a'.repeat(3000)}`, 'url-too-long'],
    ['http://user:secret@10.0.0.1', 'credentials-in-url'],
    ['http://10.0.0.1:0', 'port-zero'],
    ['http://10.0.0.1/?next=x', 'query-in-url'],
    ['http://10.0.0.1/#x', 'query-in-url'],
    ['http://169.254.1.1', 'link-local-address'],
    ['http://[fe80::1]', 'link-local-address'],
    ['http://[FEBF::1]:80', 'link-local-address'],
    ['http://169.254.169.254/latest', 'metadata-address'],
    ['http://2852039166/', 'metadata-address'],
    ['http://0xa9fea9fe/', 'metadata-address'],
    ['http://0251.0376.0251.0376/', 'metadata-address'],
    ['http://[::ffff:169.254.169.254]/', 'metadata-address'],
    ['http://[::ffff:a9fe:a9fe]/', 'metadata-address'],
    ['http://[64:ff9b::169.254.169.254]/', 'metadata-address'],
    ['http://[fd00:ec2::254]/', 'metadata-address'],
    ['http://100.100.100.200/', 'metadata-address'],
    ['http://metadata.google.internal/', 'metadata-name'],
    ['http://METADATA.google.internal./', 'metadata-name'],
    ['http://metadata/', 'metadata-name'],
    ['http://0.0.0.0:8000', 'not-a-unicast-address'],
    ['http://224.0.0.1', 'not-a-unicast-address'],
    ['http://[::]:8000', 'not-a-unicast-address'],
  ])('refuses %s by the rule %s', (url, rule) => {
    expect(checkNodeUrl(url)).toEqual({ kind: 'refused', rule });
  });

  test.each([
    ['http://127.0.0.1:8000/', 'http://127.0.0.1:8000'],
    ['http://10.0.0.1:8000/v1/', 'http://10.0.0.1:8000'],
    ['https://gpu.example.com/base/v1', 'https://gpu.example.com/base'],
    ['http://[::1]:9000/a//', 'http://[::1]:9000/a'],
  ])('accepts %s as %s', (given, url) => {
    expect(checkNodeUrl(given)).toMatchObject({ kind: 'accepted', url });
  });
});

describe('checkNodeUrlResolved', () => {
  test('refuses a harmless name that stands for a forbidden address, even among good ones', async () => {
    const verdict = await checkNodeUrlResolved('http://gpu.example.com', async () => [
      '10.0.0.1',
      '169.254.169.254',
    ]);
    expect(verdict).toEqual({ kind: 'refused', rule: 'metadata-address' });
  });

  test('refuses a name that stands for nothing', async () => {
    const fails = checkNodeUrlResolved('http://gpu.example.com', () =>
      Promise.reject(new Error('ENOTFOUND')),
    );
    expect(await fails).toEqual({ kind: 'refused', rule: 'name-unresolved' });
    expect(await checkNodeUrlResolved('http://gpu.example.com', async () => [])).toMatchObject({
      kind: 'refused',
    });
  });

  test('does not ask for an address', async () => {
    const verdict = await checkNodeUrlResolved('http://10.0.0.1', () => Promise.reject(new Error('asked')));
    expect(verdict.kind).toBe('accepted');
  });
});

test('addressRule lets ordinary addresses pass', () => {
  for (const address of ['127.0.0.1', '192.168.1.4', '::1', '2001:db8::1', '::ffff:10.0.0.1']) {
    expect(addressRule(address)).toBe('');
  }
});
