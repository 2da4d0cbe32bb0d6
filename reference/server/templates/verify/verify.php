<?php

// Returns true if a delivery is genuine and at most $tolerance seconds old. $body: the bytes as received.
function verify(string $body, string $header, string $secret, int $tolerance = 300, ?int $now = null): bool
{
    $times = [];
    $given = [];
    foreach (explode(',', $header) as $part) {
        [$name, $value] = array_pad(explode('=', $part, 2), 2, '');
        if ($name === 't') $times[] = $value;
        if ($name === 'v1') $given[] = $value;
    }
    if (count($times) !== 1 || !preg_match('/^[0-9]{1,15}\z/', $times[0])) return false;
    if (abs(($now ?? time()) - (int) $times[0]) > $tolerance) return false;
    $expected = hash_hmac('sha256', $times[0] . '.' . $body, $secret);
    foreach ($given as $value) {
        if (hash_equals($expected, $value)) return true;
    }
    return false;
}
