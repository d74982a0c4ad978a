/* The loss and gradient of multinomial logistic regression, written for one purpose: what a C compiler reaches.

   Rows in tiles of TILE, so that the model and the gradient are read once for TILE rows. */

#include <math.h>

#define TILE 4

void NAME(long m, long p, long k, const REAL *X, const long *y, const REAL *theta, REAL *value, REAL *gradient)
{
    for (long i = 0; i < k * p; i++)
        gradient[i] = 0;
    double total = 0;
    for (long first = 0; first < m; first += TILE) {
        long rows = m - first < TILE ? m - first : TILE;
        REAL z[TILE][64];
        const REAL *x[TILE];
        for (long r = 0; r < TILE; r++)
            x[r] = X + (first + (r < rows ? r : 0)) * p;
        for (long l = 0; l < k; l++) {
            REAL s0 = 0, s1 = 0, s2 = 0, s3 = 0;
            const REAL *t = theta + l * p;
            for (long i = 0; i < p; i++) {
                s0 += t[i] * x[0][i];
                s1 += t[i] * x[1][i];
                s2 += t[i] * x[2][i];
                s3 += t[i] * x[3][i];
            }
            z[0][l] = s0, z[1][l] = s1, z[2][l] = s2, z[3][l] = s3;
        }
        for (long r = 0; r < TILE; r++) {
            REAL largest = z[r][0], sum = 0, own = z[r][r < rows ? y[first + r] : 0];
            for (long l = 1; l < k; l++)
                largest = z[r][l] > largest ? z[r][l] : largest;
            for (long l = 0; l < k; l++)
                sum += z[r][l] = EXP(z[r][l] - largest);
            for (long l = 0; l < k; l++)
                z[r][l] = r < rows ? z[r][l] / sum / m : 0;
            if (r < rows) {
                z[r][y[first + r]] -= (REAL)1 / m;
                total += log(sum) + largest - own;
            }
        }
        for (long l = 0; l < k; l++) {
            REAL *g = gradient + l * p, s0 = z[0][l], s1 = z[1][l], s2 = z[2][l], s3 = z[3][l];
            for (long i = 0; i < p; i++)
                g[i] += s0 * x[0][i] + s1 * x[1][i] + s2 * x[2][i] + s3 * x[3][i];
        }
    }
    *value = total / m;
}
